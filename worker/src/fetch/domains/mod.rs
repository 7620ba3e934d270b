//! Decides which pages may start, so that no slow site keeps the others waiting.
//!
//! A page that takes longer than a second is slow. It gives its fetch permit to others and takes a slow permit: of these there are some
//! hundred, for such a page costs a connection and little else. A registrable domain whose pages were slow of late begins with slow permits,
//! and has no more of them than it leaves to others; one that has not answered a page yet has only a few. Where nothing is known of a
//! domain, its pages begin with fetch permits. All these together leave one fetch permit free for each slow page, up to half of all: those are
//! for domains that are known to be quick.
//!
//! Hundreds of hosts may never answer, so each is tried before any is waited for. The last quarter of the slow permits is for domains
//! of which nothing was known. Where none is left for such a page, it takes that of another first try, the one that has gone on for
//! longest, which is given up and asked for again later. Where there is none of these either it keeps its fetch permit, unless a quarter of
//! all are kept so and other domains are slow too: then it is given up itself.
//!
//! What is not trusted is fetched on separate threads (`apart`), for an answer may keep one busy as long as it lasts. Where these
//! come a second late to what is due, slow pages of domains that have not answered are given up, all but as many as half of the threads.

mod speed;
mod state;
#[cfg(test)]
mod tests;
mod under_way;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::Instant;
use trawl_common::settings;
use trawl_common::web::host::HostKey;

pub(crate) use self::speed::SLOW;
use self::speed::Speed;
use self::state::{Held, State};
pub(crate) use self::under_way::UnderWay;

/// Number of separate threads: each response may keep one of them busy.
pub(crate) const FETCH_THREADS: usize = 32;

/// A domain counts as slow for so long after its last slow page.
const REMEMBERED: Duration = Duration::from_secs(60);

/// So many pages of a domain may be slow at once that has answered none so far, and of another as long as first tries are.
const FEW: usize = 4;

/// So long a first try of a domain may be slow before it gives way to another.
const TRIED: Duration = Duration::from_secs(2);

/// So long no domain is trusted of which nothing is known, after one may have kept threads busy.
const WARY: Duration = Duration::from_secs(3_600);

/// Maximum number of domains whose speed is remembered.
const KNOWN: u64 = 10_000;

/// How fast domains were, and what their pages hold.
pub(crate) struct Domains {
    fetch_permits: usize,
    /// How many slow pages may be under way without a fetch permit.
    slow_permits: usize,
    known: Cache<HostKey, Speed>,
    state: Mutex<State>,
}

impl Domains {
    pub(crate) fn new(worker: &settings::Worker) -> Self {
        Self {
            fetch_permits: worker.concurrency.into(),
            // Most of what is in hand is left to others.
            slow_permits: (usize::from(worker.prefetch) * 3 / 8).max(1),
            known: Cache::builder().max_capacity(KNOWN).build(),
            state: Mutex::default(),
        }
    }

    /// Starts a page of `domain`, or returns how long its URL has to stay away.
    pub(crate) fn begin(self: &Arc<Self>, domain: HostKey) -> Result<UnderWay, Duration> {
        let mut state = self.state();
        let (held, is_free) = match self.speed(&domain) {
            Some(Speed::Quick) => (Held::Permit, true),
            Some(Speed::Slow(_) | Speed::Silent(_)) => (Held::Slow, self.may_begin(&state, &domain)),
            None => {
                let slow = state.slow.all();
                let permits = self.fetch_permits - slow.min(self.fetch_permits / 2);
                // Beside slow pages the first has to show how fast it is, and leaves permits to other domains meanwhile.
                let most = if slow == 0 { usize::MAX } else { 1 };
                let taken = state.unproven.all() + state.stuck.all();
                (Held::Unproven, taken < permits && state.unproven.of(&domain) < most)
            }
        };
        if !is_free {
            return Err(state.put_off(&domain, held));
        }
        if held == Held::Slow {
            self.free_slow_permit(&mut state, &domain);
        }
        state.take(held, &domain);
        Ok(UnderWay { domain, began: Instant::now(), held, trial: None, domains: Arc::clone(self) })
    }

    /// How long a URL of `domain` is to stay away that could not begin for long: the domain is slow, and has no slow permit.
    pub(crate) fn keeps_away(&self, domain: &HostKey) -> Option<Duration> {
        let Some(Speed::Slow(_) | Speed::Silent(_)) = self.speed(domain) else { return None };
        let mut state = self.state();
        (!self.may_begin(&state, domain)).then(|| state.put_off(domain, Held::Slow))
    }

    /// Whether what a domain answers keeps no thread busy, as far as anybody can tell: it is quick, or this is the first page
    /// of one of which nothing is known, and no such one has kept a thread busy of late.
    pub(crate) fn is_trusted(&self, domain: &HostKey) -> bool {
        match self.speed(domain) {
            Some(Speed::Quick) => true,
            Some(Speed::Slow(_) | Speed::Silent(_)) => false,
            None => {
                let state = self.state();
                let is_wary = state.kept_busy.is_some_and(|when| when.elapsed() < WARY);
                !is_wary && state.unproven.of(domain) <= 1
            }
        }
    }

    /// Records that a domain may have kept threads busy.
    pub(crate) fn kept_busy(&self, domain: HostKey) {
        let speed = Speed::slowed(self.speed(&domain));
        self.known.insert(domain, speed);
        self.state().kept_busy = Some(Instant::now());
    }

    /// The number of slow pages in flight.
    pub(crate) fn slow(&self) -> usize {
        self.state().slow.all()
    }

    /// Whether another page of a domain may be slow: it has as many slow permits as it leaves to others, so there is
    /// always one for a domain that has none.
    fn has_slow_permit(&self, state: &State, domain: &HostKey) -> bool {
        state.slow.of(domain) < self.slow_permits - state.slow.all()
    }

    /// Whether another page of a slow domain may begin. One that has answered before has a few at the cost of first
    /// tries.
    fn may_begin(&self, state: &State, domain: &HostKey) -> bool {
        let has_few = state.slow.of(domain) < FEW;
        match self.is_silent(domain) {
            true => {
                let is_last_quarter = state.slow.all() >= self.slow_permits - self.slow_permits / 4;
                has_few && !is_last_quarter && self.has_slow_permit(state, domain)
            }
            false => self.has_slow_permit(state, domain) || has_few && self.oldest_trial(state).is_some(),
        }
    }

    /// Whether a domain is slow, and has not answered so far.
    fn is_silent(&self, domain: &HostKey) -> bool {
        matches!(self.speed(domain), Some(Speed::Silent(_)))
    }

    /// The first try that has gone on for longest, if that is long enough.
    fn oldest_trial(&self, state: &State) -> Option<u64> {
        let mut trials = state.trials.iter();
        let oldest =
            trials.find(|(_, trial)| trial.since.elapsed() >= TRIED && self.is_silent(&trial.domain));
        oldest.map(|(&number, _)| number)
    }

    /// Has that one give way, if there is no slow permit for a page of `domain`.
    fn free_slow_permit(&self, state: &mut State, domain: &HostKey) {
        if !self.has_slow_permit(state, domain)
            && let Some(number) = self.oldest_trial(state)
        {
            state.leave_trial(number);
        }
    }

    /// Whether a slow page without a slow permit keeps its fetch permit.
    fn may_stay(&self, state: &State, domain: &HostKey) -> bool {
        state.stuck.all() < self.fetch_permits / 4 || !state.slow.has_other_than(domain)
    }

    fn speed(&self, domain: &HostKey) -> Option<Speed> {
        match self.known.get(domain) {
            Some(Speed::Slow(when) | Speed::Silent(when)) if when.elapsed() > REMEMBERED => None,
            speed => speed,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
