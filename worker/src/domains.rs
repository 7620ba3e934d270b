//! Which pages may begin, so that no slow site keeps the others waiting.
//!
//! A page that takes longer than a second is slow. It gives its fetch slot to others and goes on without one: there are places
//! for some hundred such pages, which cost a connection each and little else. A registrable domain whose pages were slow of
//! late begins there, and has no more of these places than it leaves to others. Where nothing is known of a domain, its pages
//! begin in fetch slots. All these together leave one slot free for each slow page, up to half of all: those are for domains
//! that are known to be quick.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::Instant;
use trawl_common::host::HostKey;
use trawl_common::settings;

/// A page that takes longer is slow.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// A domain counts as slow for so long after its last slow page.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Of so many domains it is known how fast they are.
const KNOWN: u64 = 10_000;

/// A URL that is put off comes back after this time at the earliest.
const AWAY: Duration = Duration::from_secs(1);

/// URLs of a domain that are put off come back with this time between them: of thousands only a few a second ask again.
const APART: Duration = Duration::from_millis(50);

/// None comes back later than this.
const LONGEST: Duration = Duration::from_secs(30);

/// How fast a domain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speed {
    Quick,
    /// A page of it was slow, then.
    Slow(Instant),
}

/// How fast domains were, and the room that their pages take.
pub(crate) struct Domains {
    fetch_slots: usize,
    /// How many slow pages may be under way without a fetch slot.
    slow_places: usize,
    known: Cache<HostKey, Speed>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many pages are under way without a fetch slot, of each domain that has some.
    slow: HashMap<HostKey, usize>,
    /// How many fetch slots are taken by pages that may prove slow, or have.
    unproven: usize,
    /// When the last of the URLs of a domain comes back that were put off.
    put_off: HashMap<HostKey, Instant>,
}

/// What a page takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// A fetch slot, for a domain that is quick.
    Slot,
    /// A fetch slot, for another.
    Unproven,
    /// A place among the slow pages.
    Slow,
}

impl Domains {
    pub(crate) fn new(worker: &settings::Worker) -> Self {
        Self {
            fetch_slots: worker.concurrency.into(),
            // Most of what is in hand is left to others.
            slow_places: (usize::from(worker.prefetch) * 3 / 8).max(1),
            known: Cache::builder().max_capacity(KNOWN).build(),
            state: Mutex::default(),
        }
    }

    /// Lets a page of `domain` begin, or says how long its URL is to stay away.
    pub(crate) fn begin(self: &Arc<Self>, domain: HostKey) -> Result<UnderWay, Duration> {
        let mut state = self.state();
        let slot = || state.unproven < self.fetch_slots - state.slow().min(self.fetch_slots / 2);
        let place = || self.has_place(&state, &domain);
        let room = match self.speed(&domain) {
            Some(Speed::Quick) => Some(Room::Slot),
            Some(Speed::Slow(_)) if place() => Some(Room::Slow),
            None if slot() => Some(Room::Unproven),
            Some(Speed::Slow(_)) => slot().then_some(Room::Unproven),
            None => place().then_some(Room::Slow),
        };
        let Some(room) = room else { return Err(state.put_off(&domain)) };
        state.take(room, &domain);
        Ok(UnderWay { domain, began: Instant::now(), room, domains: Arc::clone(self) })
    }

    /// How many slow pages are under way.
    pub(crate) fn slow(&self) -> usize {
        self.state().slow()
    }

    /// Whether another page of a domain may be slow: it has as many of these places as it leaves to others, so there is
    /// always one for a domain that has none.
    fn has_place(&self, state: &State, domain: &HostKey) -> bool {
        state.slow_of(domain) < self.slow_places - state.slow()
    }

    fn speed(&self, domain: &HostKey) -> Option<Speed> {
        match self.known.get(domain) {
            Some(Speed::Slow(when)) if when.elapsed() > REMEMBERED => None,
            speed => speed,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn slow(&self) -> usize {
        self.slow.values().sum()
    }

    fn slow_of(&self, domain: &HostKey) -> usize {
        self.slow.get(domain).copied().unwrap_or_default()
    }

    fn take(&mut self, room: Room, domain: &HostKey) {
        match room {
            Room::Slot => {}
            Room::Unproven => self.unproven += 1,
            Room::Slow => *self.slow.entry(domain.clone()).or_default() += 1,
        }
    }

    fn leave(&mut self, room: Room, domain: &HostKey) {
        match room {
            Room::Slot => {}
            Room::Unproven => self.unproven -= 1,
            Room::Slow => match self.slow.get_mut(domain) {
                Some(pages) if *pages > 1 => *pages -= 1,
                _ => drop(self.slow.remove(domain)),
            },
        }
    }

    /// How long a URL of `domain` is to stay away.
    fn put_off(&mut self, domain: &HostKey) -> Duration {
        let now = Instant::now();
        if self.put_off.len() >= KNOWN as usize {
            self.put_off.retain(|_, last| *last > now);
        }
        let last = self.put_off.entry(domain.clone()).or_insert(now);
        *last = (*last + APART).clamp(now + AWAY, now + LONGEST);
        *last - now
    }
}

/// A page that is under way, until this is dropped.
pub(crate) struct UnderWay {
    domain: HostKey,
    began: Instant,
    room: Room,
    domains: Arc<Domains>,
}

impl UnderWay {
    /// Whether it takes a fetch slot.
    pub(crate) fn needs_slot(&self) -> bool {
        self.room != Room::Slow
    }

    /// Notes that the page is slow: it goes on without a fetch slot, unless there are too many such pages.
    pub(crate) fn is_slow(&mut self) {
        self.domains.known.insert(self.domain.clone(), Speed::Slow(Instant::now()));
        let mut state = self.domains.state();
        let has_place = self.room == Room::Slow || self.domains.has_place(&state, &self.domain);
        let room = if has_place { Room::Slow } else { Room::Unproven };
        state.leave(self.room, &self.domain);
        state.take(room, &self.domain);
        self.room = room;
    }

    /// Notes that the page is over, and how long it took.
    pub(crate) fn end(self) {
        let Domains { known, .. } = &*self.domains;
        if self.began.elapsed() >= SLOW {
            known.insert(self.domain.clone(), Speed::Slow(Instant::now()));
        } else if self.domains.speed(&self.domain).is_none() {
            known.insert(self.domain.clone(), Speed::Quick);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.domains.state().leave(self.room, &self.domain);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use tokio::time::advance;

    use super::*;

    /// Eight fetch slots, and places for twelve slow pages.
    fn domains() -> Arc<Domains> {
        let worker = settings::Worker { concurrency: 8, prefetch: 32, ..settings::Worker::default() };
        Arc::new(Domains::new(&worker))
    }

    fn domain(number: usize) -> HostKey {
        HostKey::from_text(&format!("{number}.example"))
    }

    /// A page of each of these domains, which are slow.
    async fn slow(domains: &Arc<Domains>, numbers: Range<usize>) -> Vec<UnderWay> {
        let mut pages = Vec::new();
        for number in numbers {
            let mut page = domains.begin(domain(number)).unwrap();
            advance(SLOW).await;
            page.is_slow();
            pages.push(page);
        }
        pages
    }

    #[tokio::test(start_paused = true)]
    async fn slow_pages_give_up_their_slots_and_leave_half_of_them_to_quick_domains() {
        let domains = domains();
        domains.begin(domain(100)).unwrap().end();
        let slow = slow(&domains, 0..16).await;
        assert_eq!(slow.iter().filter(|page| page.needs_slot()).count(), 4, "half of the slots");
        assert!(domains.begin(domain(101)).is_err(), "nobody knows whether it is quick");
        assert!(domains.begin(domain(100)).is_ok());
        drop(slow);
        assert!(domains.begin(domain(101)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn domains_of_which_nothing_is_known_have_all_slots_while_no_page_is_slow() {
        let domains = domains();
        let pages: Vec<_> = (0..8).map(|number| domains.begin(domain(number)).unwrap()).collect();
        assert!(pages.iter().all(UnderWay::needs_slot));
        assert!(!domains.begin(domain(8)).unwrap().needs_slot());
        drop(pages);
        let _slow = slow(&domains, 0..2).await;
        let pages: Vec<_> = (10..20).map(|number| domains.begin(domain(number)).unwrap()).collect();
        assert_eq!(pages.iter().filter(|page| page.needs_slot()).count(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_domains_have_as_many_places_as_they_leave_to_others() {
        let domains = domains();
        let mut pages = slow(&domains, 0..1).await;
        while let Ok(page) = domains.begin(domain(0)) {
            pages.push(page);
        }
        let slots = pages.iter().filter(|page| page.needs_slot()).count();
        assert_eq!((pages.len() - slots, slots), (6, 4), "half of the places and of the slots");
        pages.extend(slow(&domains, 1..4).await);
        assert!(domains.begin(domain(1)).is_ok());
        assert!(domains.begin(domain(0)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_domain_is_quick_again_when_its_pages_have_been_quick_for_a_minute() {
        let domains = domains();
        slow(&domains, 0..1).await.remove(0).end();
        domains.begin(domain(0)).unwrap().end();
        assert!(matches!(domains.speed(&domain(0)), Some(Speed::Slow(_))));
        advance(REMEMBERED + SLOW).await;
        domains.begin(domain(0)).unwrap().end();
        assert_eq!(domains.speed(&domain(0)), Some(Speed::Quick));
    }

    #[tokio::test(start_paused = true)]
    async fn urls_that_are_put_off_come_back_one_after_the_other() {
        let domains = domains();
        let _slow = slow(&domains, 0..16).await;
        let mut away = Vec::new();
        for _ in 0..2_000 {
            away.extend(domains.begin(domain(99)).err());
        }
        assert_eq!((away[0], away[1], away[1_999]), (AWAY, AWAY + APART, LONGEST));
        advance(LONGEST).await;
        assert_eq!(domains.begin(domain(99)).err(), Some(AWAY));
    }
}
