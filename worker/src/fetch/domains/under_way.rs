//! A page in flight.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::oneshot;
use tokio::time::Instant;
use trawl_common::web::host::HostKey;
use trawl_web::Threads;

use super::speed::{SLOW, Speed};
use super::{Domains, FETCH_THREADS};

/// A page in flight, until this is dropped.
pub(crate) struct UnderWay {
    pub(super) domain: HostKey,
    pub(super) began: Instant,
    pub(super) needs_permit: bool,
    /// The number of its place, if it has one, and what ends when it is to give way.
    pub(super) place: Option<(u64, oneshot::Receiver<()>)>,
    pub(super) domains: Arc<Domains>,
}

impl UnderWay {
    /// When it was let go.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Whether it takes a fetch permit.
    pub(crate) fn needs_permit(&self) -> bool {
        self.needs_permit
    }

    /// Notes that the page is slow: it goes on without a fetch permit if it has a place, or if its domain is the only one that is slow. Else it
    /// is to be given up, and to stay away for the time that is returned.
    pub(crate) fn is_slow(&mut self) -> Result<(), Duration> {
        let domains = &self.domains;
        domains.known.insert(self.domain.clone(), Speed::slowed(domains.speed(&self.domain)));
        let mut state = domains.state();
        match &self.place {
            Some((number, _)) => state.give_permit_up(*number),
            None if domains.make_place(&mut state, &self.domain) => {
                self.place = Some(state.enter(&self.domain, false));
            }
            None if state.has_other_than(&self.domain) => {
                return Err(domains.put_off(&mut state, &self.domain));
            }
            None => return Ok(()),
        }
        self.needs_permit = false;
        Ok(())
    }

    /// The same page in a place, if there is one, as long as its links take to be taken in.
    pub(crate) fn in_place(mut self) -> Self {
        let mut state = self.domains.state();
        match &self.place {
            Some((number, _)) => state.give_permit_up(*number),
            None if self.domains.has_place(&state, &self.domain) => {
                self.place = Some(state.enter(&self.domain, false));
            }
            None => {}
        }
        drop(state);
        self
    }

    /// Waits until the page, which is slow, is to be given up for others, and says how long it is to stay away.
    pub(crate) async fn gives_way(&mut self, threads: &Threads) -> Duration {
        loop {
            let place = self.place.as_mut();
            tokio::select! {
                // Nothing is ever sent.
                Some(Err(_)) = OptionFuture::from(place.map(|(_, given_up)| given_up)) => break,
                lag = threads.lag(SLOW) => if self.is_one_too_many(lag) { break },
            }
        }
        self.domains.put_off(&mut self.domains.state(), &self.domain)
    }

    /// Whether its domain may keep threads busy, and has another page under way; or has not answered, and beside it are as many slow pages as may
    /// keep threads busy that are late by `lag`.
    fn is_one_too_many(&self, lag: Duration) -> bool {
        let Self { domains, domain, .. } = self;
        let are_late = lag > SLOW && domains.slow() > FETCH_THREADS / 2;
        domains.keeps_busy(domain) && domains.state().of(domain) > 1 || are_late && domains.is_silent(domain)
    }

    /// Records that the page was answered, after a long time.
    pub(crate) fn is_answered(&self) {
        self.domains.known.insert(self.domain.clone(), Speed::answered(self.began.elapsed()));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some((number, _)) = &self.place {
            self.domains.state().leave(*number);
        }
    }
}
