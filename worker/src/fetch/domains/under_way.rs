//! A page in flight.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::oneshot;
use tokio::time::Instant;
use trawl_common::web::host::HostKey;
use trawl_web::Threads;

use super::speed::{SLOW, Speed};
use super::state::Held;
use super::{Domains, FETCH_THREADS};

/// A page in flight, until this is dropped.
pub(crate) struct UnderWay {
    pub(super) domain: HostKey,
    pub(super) began: Instant,
    pub(super) held: Held,
    /// Its number as a first try, if it is one that is slow, and what ends when it is to give way.
    pub(super) trial: Option<(u64, oneshot::Receiver<()>)>,
    pub(super) domains: Arc<Domains>,
}

impl UnderWay {
    /// Whether it takes a fetch permit.
    pub(crate) fn needs_permit(&self) -> bool {
        self.held != Held::Slow
    }

    /// Notes that the page is slow: it goes on if it has a permit of either kind, or is to be given up, and to stay away
    /// for so long.
    pub(crate) fn is_slow(&mut self) -> Result<(), Duration> {
        self.domains.known.insert(self.domain.clone(), Speed::slowed(self.domains.speed(&self.domain)));
        let mut state = self.domains.state();
        if self.held == Held::Slow {
            return Ok(());
        }
        let is_trial = self.held == Held::Unproven && self.domains.is_silent(&self.domain);
        if is_trial && state.slow.of(&self.domain) == 0 {
            self.domains.free_slow_permit(&mut state, &self.domain);
        }
        let held = match self.domains.has_slow_permit(&state, &self.domain) {
            true => Held::Slow,
            false if self.domains.may_stay(&state, &self.domain) => Held::Stuck,
            false => return Err(state.put_off(&self.domain, Held::Slow)),
        };
        state.leave(self.held, &self.domain);
        state.take(held, &self.domain);
        self.held = held;
        if is_trial && held == Held::Slow {
            self.trial = Some(state.begin_trial(&self.domain));
        }
        Ok(())
    }

    /// Waits until the page, which is slow, is to be given up for others, and says how long it is to stay away.
    pub(crate) async fn gives_way(&mut self, threads: &Threads) -> Duration {
        loop {
            let trial = self.trial.as_mut();
            tokio::select! {
                // Nothing is ever sent.
                Some(Err(_)) = OptionFuture::from(trial.map(|(_, given_up)| given_up)) => break,
                lag = threads.lag(SLOW) => if lag > SLOW && self.is_one_too_many() { break },
            }
        }
        self.domains.state().put_off(&self.domain, Held::Slow)
    }

    /// Whether its domain has not answered, and beside it are as many slow pages as may keep threads busy.
    fn is_one_too_many(&self) -> bool {
        let state = self.domains.state();
        state.slow.all() + state.stuck.all() > FETCH_THREADS / 2 && self.domains.is_silent(&self.domain)
    }

    /// Records that the page was answered, after a long time.
    pub(crate) fn is_answered(&self) {
        let before = self.domains.speed(&self.domain);
        self.domains.known.insert(self.domain.clone(), Speed::answered(before, self.began.elapsed()));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.domains.state();
        match self.trial {
            Some((number, _)) => state.leave_trial(number),
            None => state.leave(self.held, &self.domain),
        }
    }
}
