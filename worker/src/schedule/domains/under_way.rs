//! A page in flight.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::oneshot;
use tokio::time::Instant;
use trawl_common::web::host::HostKey;
use trawl_web::Threads;

use super::speed::{SLOW_PAGE, Speed};
use super::{Away, Candidate, Domains, FETCH_THREADS};

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
    /// Whether it needs a fetch permit.
    pub(crate) fn needs_permit(&self) -> bool {
        self.needs_permit
    }

    /// Records that the page is slow. It continues without a fetch permit if there is a place for it, and with its
    /// permit if no other domain is slow. Otherwise it must be given up.
    ///
    /// # Errors
    /// The time for which the URL of a page that is given up has to stay away.
    pub(crate) fn mark_slow(&mut self) -> Result<(), Away> {
        let domains = &self.domains;
        domains.known.insert(self.domain.clone(), Speed::slowed(domains.speed(&self.domain)));
        let mut state = domains.state.lock();
        match &self.place {
            Some((number, _)) => state.give_permit_up(*number),
            None if domains.make_place(&mut state, &self.domain) => {
                self.place = Some(state.enter(&self.domain, false));
            }
            None if state.has_other_than(&self.domain) => {
                return Err(domains.put_off(&mut state, &self.candidate()));
            }
            None => return Ok(()),
        }
        self.needs_permit = false;
        Ok(())
    }

    /// Moves the page to a place, if there is one, for the time that its links take to be admitted.
    pub(crate) fn in_place(mut self) -> Self {
        let mut state = self.domains.state.lock();
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

    /// Waits until the slow page must give way to others. Returns how long it has to stay away.
    pub(crate) async fn gives_way(&mut self, threads: &Threads) -> Away {
        loop {
            let place = self.place.as_mut();
            tokio::select! {
                // Nothing is ever sent.
                Some(Err(_)) = OptionFuture::from(place.map(|(_, given_up)| given_up)) => break,
                lag = threads.lag(SLOW_PAGE) => if self.is_one_too_many(lag) { break },
            }
        }
        self.domains.put_off(&mut self.domains.state.lock(), &self.candidate())
    }

    /// Returns what begins again once the page was given up: it has had its turn, so it comes after all others.
    fn candidate(&self) -> Candidate {
        Candidate { domain: self.domain.clone(), since: None }
    }

    /// Whether the domain may keep threads busy and has another page in flight, or has never answered while the threads
    /// are late by `lag` and many pages are slow.
    fn is_one_too_many(&self, lag: Duration) -> bool {
        let Self { domains, domain, .. } = self;
        let are_late = lag > SLOW_PAGE && domains.slow() > FETCH_THREADS / 2;
        domains.keeps_busy(domain) && domains.state.lock().of(domain) > 1
            || are_late && domains.is_silent(domain)
    }

    /// Records that the page was answered, and how long that took.
    pub(crate) fn mark_answered(&self) {
        self.domains.known.insert(self.domain.clone(), Speed::answered(self.began.elapsed()));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some((number, _)) = &self.place {
            self.domains.state.lock().leave(*number);
        }
    }
}
