//! Decides which pages may start, so that no slow site keeps the others waiting.
//!
//! A page of a domain that answers within a second starts with a fetch permit. Any other page needs a place; there are
//! some hundred, since a slow page costs a connection and little else. A page of an unknown domain takes a fetch permit
//! as well, and gives it up after a second. While pages are slow, such pages leave half of all permits to quick
//! domains. A domain holds no more places than it leaves to others, so one is always left for a domain that has none.
//! While no page is slow, a domain may hold any number. Admitting the links of a page that has many takes long as well,
//! so that page keeps a place until then.
//!
//! A URL that finds no place is put off, and a place is left for each that is about to return.
//!
//! Hundreds of hosts may never answer, so each is tried before any is waited for. If no place is left for a domain, the
//! slow page that started first, among those of domains that have never answered, gives way to one of the first few
//! pages of that domain, and is requested again later.
//!
//! Pages of untrusted domains are fetched on separate threads (`apart`), because a response may keep a thread busy for
//! as long as it lasts; a domain that has done so has one page at a time. While these threads are more than a second
//! late, slow pages of domains that have not answered are given up, except for half as many as there are threads.

mod put_off;
mod speed;
mod state;
#[cfg(test)]
mod tests;
mod under_way;

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use parking_lot::Mutex;
use tokio::time::Instant;
use trawl_common::settings;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

pub(crate) use self::put_off::{Away, LinePace, PutOff};
pub(crate) use self::speed::SLOW_PAGE;
use self::speed::Speed;
use self::state::State;
pub(crate) use self::under_way::UnderWay;
use crate::claimed::ClaimedUrl;
use crate::telemetry::lateness::Lateness;

/// Number of separate threads: each response may keep one of them busy.
pub(crate) const FETCH_THREADS: usize = 32;

/// Number of pages of a domain that may start in the places of silent domains.
const MAX_ON_TRIAL: usize = 4;

/// The time that a page of a silent domain keeps its place before it may have to give way.
const TRIAL_TIME: Duration = Duration::from_secs(2);

/// The time for which unknown domains are not trusted after any domain may have kept threads busy, nor that domain
/// itself.
const DISTRUST_TIME: Duration = Duration::from_secs(3_600);

/// Maximum number of domains whose speed is remembered.
const MAX_KNOWN: u64 = 10_000;

/// A page that could begin.
pub(crate) struct Candidate {
    pub(crate) domain: HostKey,
    /// The time since when its URL has been put off, if it has.
    pub(crate) since: Option<UnixMs>,
}

impl Candidate {
    pub(crate) fn new(claimed: &ClaimedUrl) -> Self {
        Self { domain: HostKey::domain(&claimed.target().host()), since: claimed.message.since }
    }
}

/// The speed of domains, and the places of their pages.
pub(crate) struct Domains {
    fetch_permits: usize,
    places: usize,
    known: Cache<HostKey, Speed>,
    /// Domains that may have kept threads busy, and since when.
    busy: Cache<HostKey, Instant>,
    state: Mutex<State>,
    lateness: Arc<Lateness>,
}

impl Domains {
    pub(crate) fn new(worker: &settings::Worker, lateness: Arc<Lateness>) -> Self {
        Self {
            fetch_permits: worker.concurrency.into(),
            // Most of what is in hand is left to others.
            places: (usize::from(worker.prefetch) * 3 / 8).max(1),
            known: Cache::builder().max_capacity(MAX_KNOWN).build(),
            busy: Cache::builder().max_capacity(MAX_KNOWN).build(),
            state: Mutex::default(),
            lateness,
        }
    }

    /// Starts a page, or puts its URL off.
    pub(crate) fn begin(self: &Arc<Self>, page: Candidate) -> Result<UnderWay, Away> {
        let mut state = self.state.lock();
        if !self.may_begin(&state, &page) {
            return Err(self.put_off(&mut state, &page));
        }
        let Candidate { domain, since } = page;
        if let Some(since) = since {
            state.put_off.has_returned(&domain, since);
        }
        let speed = self.speed(&domain);
        let needs_permit = speed.is_none_or(Speed::is_quick);
        let place = (!speed.is_some_and(Speed::is_quick)).then(|| {
            self.make_place(&mut state, &domain);
            state.enter(&domain, needs_permit)
        });
        Ok(UnderWay { domain, began: Instant::now(), needs_permit, place, domains: Arc::clone(self) })
    }

    /// Puts the URL of a page off if it may not begin, and returns for how long.
    pub(crate) fn keeps_away(&self, page: &Candidate) -> Option<Away> {
        let mut state = self.state.lock();
        (!self.may_begin(&state, page)).then(|| self.put_off(&mut state, page))
    }

    /// Whether what a domain answers keeps no thread busy, as far as anybody can tell: it has answered, or this is the
    /// first page of one of which nothing is known, and no such one has kept a thread busy of late.
    pub(crate) fn is_trusted(&self, domain: &HostKey) -> bool {
        match self.speed(domain) {
            _ if self.keeps_busy(domain) => false,
            Some(speed) => !speed.is_silent(),
            None => {
                let state = self.state.lock();
                let is_wary = state.kept_busy.is_some_and(|when| when.elapsed() < DISTRUST_TIME);
                !is_wary && state.of(domain) <= 1
            }
        }
    }

    /// Records that a domain may have kept threads busy.
    pub(crate) fn kept_busy(&self, domain: HostKey) {
        self.known.insert(domain.clone(), Speed::slowed(self.speed(&domain)));
        self.busy.insert(domain, Instant::now());
        self.state.lock().kept_busy = Some(Instant::now());
    }

    /// Records that a response of a domain has begun after this time. Its body, a file, takes time of its own.
    pub(crate) fn mark_begun(&self, domain: HostKey, took: Duration) {
        self.known.insert(domain, Speed::answered(took));
    }

    /// The number of slow pages in flight.
    pub(crate) fn slow(&self) -> usize {
        self.state.lock().slow()
    }

    /// Whether a domain may have kept threads busy of late.
    fn keeps_busy(&self, domain: &HostKey) -> bool {
        self.busy.get(domain).is_some_and(|when| when.elapsed() < DISTRUST_TIME)
    }

    /// Whether a page may begin.
    fn may_begin(&self, state: &State, page: &Candidate) -> bool {
        let domain = &page.domain;
        if self.keeps_busy(domain) && state.of(domain) > 0 {
            return false;
        }
        let speed = self.speed(domain);
        let permits = self.fetch_permits - state.slow().min(self.fetch_permits / 2);
        let has_permit = speed.is_some() || state.unproven() < permits;
        let has_place = || self.has_place(state, domain) || self.gives_way(state, domain).is_some();
        let is_ahead = || speed.is_some_and(Speed::is_quick) || self.leaves_place(state, page);
        has_permit && (speed.is_none() && state.slow() == 0 || has_place() && is_ahead())
    }

    /// Whether there is a place for another page of a domain: it has as many as it leaves to others.
    fn has_place(&self, state: &State, domain: &HostKey) -> bool {
        state.of(domain) < self.places.saturating_sub(state.all())
    }

    /// Whether there is a place for another page of a domain, and one for each URL before it that is about to return.
    fn leaves_place(&self, state: &State, page: &Candidate) -> bool {
        let ahead = state.put_off.ahead(&page.domain, page.since, self.places);
        ahead == 0 || state.of(&page.domain) + ahead < self.places.saturating_sub(state.all() + ahead)
    }

    /// The page that gives way to one of `domain` where there is no place for that: the first of a silent domain, if it
    /// has had its try.
    fn gives_way(&self, state: &State, domain: &HostKey) -> Option<u64> {
        if state.of(domain) >= MAX_ON_TRIAL || self.is_silent(domain) {
            return None;
        }
        let mut tried = state.slow_pages().take_while(|(_, place)| place.since.elapsed() >= TRIAL_TIME);
        tried.find(|(_, place)| self.is_silent(&place.domain)).map(|(number, _)| number)
    }

    /// Frees a place for a page of `domain`, if need be and if another gives way. Returns whether there is one.
    fn make_place(&self, state: &mut State, domain: &HostKey) -> bool {
        if self.has_place(state, domain) {
            return true;
        }
        let gives_way = self.gives_way(state, domain);
        if let Some(number) = gives_way {
            state.leave(number);
        }
        gives_way.is_some()
    }

    fn put_off(&self, state: &mut State, page: &Candidate) -> Away {
        let takes = self.speed(&page.domain).map(Speed::took);
        let of = state.of(&page.domain);
        let interval = self.lateness.interval();
        state.put_off.put_off(&page.domain, page.since, LinePace { takes, of, places: self.places, interval })
    }

    /// Whether a domain is slow, and has not answered so far.
    fn is_silent(&self, domain: &HostKey) -> bool {
        self.speed(domain).is_some_and(Speed::is_silent)
    }

    fn speed(&self, domain: &HostKey) -> Option<Speed> {
        self.known.get(domain).filter(|speed| !speed.is_forgotten())
    }
}
