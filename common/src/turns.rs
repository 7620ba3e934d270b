//! Requests that wait in hand for their turn: for robots.txt and for what a producer reads. Pages wait in the queue.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::info;

use crate::ceiling::Ceiling;
use crate::gcra::{Leave, Slot, Standing, Wish};
use crate::health::Health;
use crate::host::HostKey;
use crate::outcome::Failure;
use crate::ports::{Ask, Hosts, Refusal};
use crate::settings::{Manners, Politeness};
use crate::ticket::{Places, Ticket};
use crate::time::UnixMs;
use crate::waiting::in_line;

/// What a process needs to ask hosts in their turn.
#[derive(Clone)]
pub struct Turns {
    /// Who keeps the schedules.
    pub hosts: Arc<dyn Hosts>,
    /// What becomes known of servers that fail.
    pub health: Arc<Health>,
    /// The places of this process.
    pub places: Arc<Places>,
    /// After how long a place is free that nobody leaves or keeps.
    pub lapse: Duration,
    /// What all requests of this process keep to.
    pub ceiling: Arc<Ceiling>,
}

/// What a host's schedule says to whoever asks once.
pub enum Turn {
    /// The host may be asked now.
    Now(Ticket),
    /// After this wait, for which this slot is reserved.
    At(Duration, UnixMs),
    /// Too far ahead to be reserved: to be asked for again after this wait, with this turn in the line.
    Later(Duration, UnixMs),
    /// A person forbade to ask it.
    Blocked,
}

/// A turn in the line of a host, and how often whoever has it came back for it.
pub type InLine = (UnixMs, u8);

/// Why a host is not to be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// Its slots are taken as far ahead as any are given: to be asked for again then, with this turn.
    Later(UnixMs, InLine),
    /// A person forbade to ask it.
    Blocked,
}

impl Turns {
    /// Asks a host's schedule once. `held` is the slot that an earlier [`Turn::At`] gave.
    pub async fn ask(&self, manners: &Manners, held: Option<UnixMs>, standing: Standing) -> Turn {
        let Manners { key, pace, .. } = manners;
        let wish =
            Wish { pace: *pace, held, standing, deadline: None, token: rand::random(), lapse: self.lapse };
        let ask = [Ask { key: key.clone(), wish }];
        match self.health.until_done("reserving slots", || self.hosts.reserve(&ask)).await.pop() {
            Some(Slot::Reserved { wait, at }) => Turn::At(wait, at),
            Some(Slot::Later { wait, turn }) => Turn::Later(wait, turn),
            Some(Slot::Blocked) => Turn::Blocked,
            Some(Slot::Now | Slot::TooLate) | None => {
                self.ceiling.wait().await;
                Turn::Now(Ticket::new(&self.places, key.clone(), &wish, 0))
            }
        }
    }

    /// Waits for a turn with a host, unless that is further ahead than slots are given. `turn` is what an earlier
    /// [`NotNow::Later`] said.
    pub async fn wait(&self, manners: &Manners, turn: Option<InLine>) -> Result<Ticket, NotNow> {
        let standing = Standing::of(turn.map(|(turn, _)| turn));
        let mut held = None;
        loop {
            match self.ask(manners, held, standing).await {
                Turn::Now(ticket) => return Ok(ticket),
                Turn::At(wait, slot) => {
                    held = Some(slot);
                    sleep(wait).await;
                }
                Turn::Later(wait, new) => {
                    let (away, turn) = in_line(wait, new, turn, rand::random());
                    return Err(NotNow::Later(UnixMs::now().plus(away), turn));
                }
                Turn::Blocked => return Err(NotNow::Blocked),
            }
        }
    }

    /// Does `work`, and meanwhile frees the places of requests that are over.
    pub async fn freeing<T>(&self, work: impl Future<Output = T>) -> T {
        let done = tokio::select! {
            done = work => done,
            never = self.places.freeing(&*self.hosts) => match never {},
        };
        self.places.free(&*self.hosts).await;
        done
    }

    /// Has everyone leave a host alone that answered with `failure`, for as long as it says, or else as `politeness` does.
    /// Returns until when.
    pub async fn push_back(&self, key: &HostKey, politeness: &Politeness, failure: &Failure) -> UnixMs {
        let leave = Leave {
            asked: failure.retry_after,
            base: politeness.backoff,
            jitter: rand::random(),
            most: politeness.max_backoff,
        };
        let refusal = Refusal { status: failure.status.unwrap_or_default(), leave };
        self.places.refused(key);
        let pushing = || self.hosts.push_back(key, &refusal);
        let until = self.health.until_done("pushing a host back", pushing).await;
        info!(host = %key, status = refusal.status, %until, "the host wants to be left alone");
        until
    }
}
