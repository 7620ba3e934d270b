//! The schedules of hosts, on the tests' clock.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;
use trawl_common::politeness::gcra::Slot;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{
    BackoffRequest, Ended, Error, ErrorKind, HostSlotRequest, Hosts, InFlightRequest, Result, RobotsEntry,
    SentLate,
};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use super::{Memory, State};

/// The behaviour of the schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tests) enum Schedules {
    /// Calls are answered.
    #[default]
    Answer,
    /// The last answer is missing.
    Short,
    /// Every call is refused.
    Refuse,
    /// This many calls fail as in an outage.
    Away(u32),
}

impl State {
    /// The time in microseconds, as in schedules.
    fn now(&self) -> u64 {
        self.began.0 * 1_000 + self.begun.elapsed().as_micros() as u64
    }
}

#[async_trait]
impl Hosts for Memory {
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
        let mut state = self.state();
        let now = state.now();
        let mut slots = Vec::new();
        for HostSlotRequest { key, request } in asks {
            state.calls.push(format!("reserve {key}"));
            slots.push(state.hosts.entry(key.clone()).or_default().reserve(request, now));
        }
        match &mut state.schedules {
            Schedules::Answer | Schedules::Away(0) => {}
            Schedules::Short => drop(slots.pop()),
            Schedules::Refuse => return Err(Error::new(ErrorKind::Refused, "no permission")),
            Schedules::Away(calls) => {
                *calls -= 1;
                return Err(Error::new(ErrorKind::Unavailable, "away"));
            }
        }
        Ok(slots)
    }

    async fn stay(&self, _visits: &[InFlightRequest], _lapse: Duration) -> Result<()> {
        Ok(())
    }

    async fn leave(&self, ended: &[Ended]) -> Result<()> {
        let mut state = self.state();
        let now = state.now();
        for Ended { visit, is_welcome } in ended {
            if let Some(schedule) = state.hosts.get_mut(&visit.key) {
                schedule.leave(visit.token, *is_welcome, now);
            }
        }
        Ok(())
    }

    async fn sent_late(&self, _sent: &[SentLate]) -> Result<()> {
        Ok(())
    }

    async fn push_back(&self, _key: &HostKey, _refusal: &BackoffRequest) -> Result<UnixMs> {
        unreachable!("no host refuses")
    }

    /// The file of a name forbids everything, and comes after its time; addresses have none.
    async fn robots(&self, key: &RobotsKey, _lease: Duration) -> Result<RobotsEntry> {
        let takes = key.as_str().ends_with(".example").then(|| self.state().robots_of_names);
        if let Some(takes) = takes {
            sleep(takes).await;
        }
        let (status, body) = if takes.is_some() { (200, "User-agent: *\nDisallow: /\n") } else { (404, "") };
        Ok(RobotsEntry::Known(RobotsFile { status, body: body.into(), failure: None }))
    }

    async fn keep_robots(&self, _: &RobotsKey, _: &RobotsFile, _: Duration) -> Result<()> {
        unreachable!("robots.txt is not obeyed")
    }

    async fn give_up_robots(&self, _key: &RobotsKey) -> Result<()> {
        unreachable!("robots.txt is not obeyed")
    }
}
