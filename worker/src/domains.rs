//! Which pages may begin, so that no slow site keeps the others waiting.
//!
//! A page that takes longer than a second is slow. It gives its fetch slot to others and goes on without one: there are places
//! for some hundred such pages, which cost a connection each and little else. Where none is left for it, it keeps its slot, unless
//! a quarter of all are kept so and other domains are slow too: then it is given up, and asked for again when there is a place. A registrable domain whose pages were slow of late begins in these places, and has no
//! more of them than it leaves to others; one that has not answered a page yet has only a few. Where nothing is known of a domain, its pages begin in fetch slots. All these
//! together leave one slot free for each slow page, up to half of all: those are for domains that are known to be quick.

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

/// So many pages of a domain may be slow at once that has answered none so far.
const UNANSWERED: usize = 4;

/// Of so many domains it is known how fast they are.
const KNOWN: u64 = 10_000;

/// A URL that is put off comes back after this time at the earliest.
const AWAY: Duration = Duration::from_secs(1);

/// URLs that wait for a place for slow pages come back with this time between them, those of different domains in turn: of
/// thousands only some twenty a second ask again.
const APART: Duration = Duration::from_millis(50);

/// The same for URLs of one domain that wait for a fetch slot: its first page soon shows how fast it is.
const CLOSE: Duration = Duration::from_millis(5);

/// None comes back later than this.
const LONGEST: Duration = Duration::from_secs(30);

/// How fast a domain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speed {
    Quick,
    /// A page of it was slow, then.
    Slow(Instant),
    /// Likewise, and it has answered none so far.
    Silent(Instant),
}

impl Speed {
    /// Of a domain of which another page is slow.
    fn slowed(before: Option<Self>) -> Self {
        match before {
            Some(Self::Quick | Self::Slow(_)) => Self::Slow(Instant::now()),
            Some(Self::Silent(_)) | None => Self::Silent(Instant::now()),
        }
    }

    /// Of a domain that has answered a page after so long.
    fn answered(before: Option<Self>, after: Duration) -> Self {
        match before {
            Some(Self::Slow(when) | Self::Silent(when)) if after < SLOW => Self::Slow(when),
            Some(Self::Quick) | None if after < SLOW => Self::Quick,
            _ => Self::Slow(Instant::now()),
        }
    }
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
    slow: Pages,
    /// How many fetch slots are taken by pages that may prove slow.
    unproven: Pages,
    /// How many fetch slots are kept by slow pages.
    stuck: Pages,
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
    /// A fetch slot, for a page that proved slow when there was no place.
    Stuck,
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
        let (room, is_free) = match self.speed(&domain) {
            Some(Speed::Quick) => (Room::Slot, true),
            Some(Speed::Slow(_) | Speed::Silent(_)) => (Room::Slow, self.may_begin(&state, &domain)),
            None => {
                let slow = state.slow.all();
                let slots = self.fetch_slots - slow.min(self.fetch_slots / 2);
                // Beside slow pages the first has to show how fast it is, and leaves slots to other domains meanwhile.
                let most = if slow == 0 { usize::MAX } else { 1 };
                let taken = state.unproven.all() + state.stuck.all();
                (Room::Unproven, taken < slots && state.unproven.of(&domain) < most)
            }
        };
        if !is_free {
            return Err(state.put_off(&domain, room));
        }
        state.take(room, &domain);
        Ok(UnderWay { domain, began: Instant::now(), room, domains: Arc::clone(self) })
    }

    /// How long a URL of `domain` is to stay away that could not begin for long: the domain is slow, and has no place.
    pub(crate) fn keeps_away(&self, domain: &HostKey) -> Option<Duration> {
        let Some(Speed::Slow(_) | Speed::Silent(_)) = self.speed(domain) else { return None };
        let mut state = self.state();
        (!self.may_begin(&state, domain)).then(|| state.put_off(domain, Room::Slow))
    }

    /// How many slow pages are under way.
    pub(crate) fn slow(&self) -> usize {
        self.state().slow.all()
    }

    /// Whether another page of a domain may be slow: it has as many of these places as it leaves to others, so there is
    /// always one for a domain that has none.
    fn has_place(&self, state: &State, domain: &HostKey) -> bool {
        state.slow.of(domain) < self.slow_places - state.slow.all()
    }

    /// Whether another page of a slow domain may begin in such a place.
    fn may_begin(&self, state: &State, domain: &HostKey) -> bool {
        let is_silent = matches!(self.speed(domain), Some(Speed::Silent(_)));
        self.has_place(state, domain) && !(is_silent && state.slow.of(domain) >= UNANSWERED)
    }

    /// Whether a slow page for which there is no place keeps its fetch slot.
    fn may_stay(&self, state: &State, domain: &HostKey) -> bool {
        state.stuck.all() < self.fetch_slots / 4 || !state.slow.has_other_than(domain)
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

/// How many pages of each domain.
#[derive(Default)]
struct Pages(HashMap<HostKey, usize>);

impl Pages {
    fn all(&self) -> usize {
        self.0.values().sum()
    }

    fn of(&self, domain: &HostKey) -> usize {
        self.0.get(domain).copied().unwrap_or_default()
    }

    fn has_other_than(&self, domain: &HostKey) -> bool {
        self.0.keys().any(|other| other != domain)
    }

    fn add(&mut self, domain: &HostKey) {
        *self.0.entry(domain.clone()).or_default() += 1;
    }

    fn remove(&mut self, domain: &HostKey) {
        match self.0.get_mut(domain) {
            Some(pages) if *pages > 1 => *pages -= 1,
            _ => drop(self.0.remove(domain)),
        }
    }
}

impl State {
    fn take(&mut self, room: Room, domain: &HostKey) {
        match room {
            Room::Slot => {}
            Room::Unproven => self.unproven.add(domain),
            Room::Stuck => self.stuck.add(domain),
            Room::Slow => self.slow.add(domain),
        }
    }

    fn leave(&mut self, room: Room, domain: &HostKey) {
        match room {
            Room::Slot => {}
            Room::Unproven => self.unproven.remove(domain),
            Room::Stuck => self.stuck.remove(domain),
            Room::Slow => self.slow.remove(domain),
        }
    }

    /// How long a URL of `domain` is to stay away that finds no such room: fetch slots come free within a second, places for
    /// slow pages may take long.
    fn put_off(&mut self, domain: &HostKey, room: Room) -> Duration {
        let now = Instant::now();
        self.put_off.retain(|_, last| *last > now);
        let others = self.put_off.len().clamp(1, KNOWN as usize) as u32;
        let apart = if room == Room::Slow { APART * others } else { CLOSE };
        let last = self.put_off.entry(domain.clone()).or_insert(now);
        *last = (*last + apart).clamp(now + AWAY, now + LONGEST);
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

    /// Notes that the page is slow: it goes on, if there is a place without a fetch slot, or is to be given up, and to stay away
    /// for so long.
    pub(crate) fn is_slow(&mut self) -> Result<(), Duration> {
        self.domains.known.insert(self.domain.clone(), Speed::slowed(self.domains.speed(&self.domain)));
        let mut state = self.domains.state();
        if self.room == Room::Slow {
            return Ok(());
        }
        let room = match self.domains.has_place(&state, &self.domain) {
            true => Room::Slow,
            false if self.domains.may_stay(&state, &self.domain) => Room::Stuck,
            false => return Err(state.put_off(&self.domain, Room::Slow)),
        };
        state.leave(self.room, &self.domain);
        state.take(room, &self.domain);
        self.room = room;
        Ok(())
    }

    /// Notes that the page was answered, after all this time.
    pub(crate) fn is_answered(&self) {
        let before = self.domains.speed(&self.domain);
        self.domains.known.insert(self.domain.clone(), Speed::answered(before, self.began.elapsed()));
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

    /// A page of each of these domains, which have answered, and are slow.
    async fn slow(domains: &Arc<Domains>, numbers: Range<usize>) -> Vec<UnderWay> {
        let mut pages = Vec::new();
        for number in numbers {
            domains.begin(domain(number)).unwrap().is_answered();
            pages.push(slow_page(domains, number).await.unwrap());
        }
        pages
    }

    /// A page that takes more than a second.
    async fn slow_page(domains: &Arc<Domains>, number: usize) -> Result<UnderWay, Duration> {
        let mut page = domains.begin(domain(number))?;
        advance(SLOW).await;
        page.is_slow().map(|()| page)
    }

    #[tokio::test(start_paused = true)]
    async fn slow_pages_give_up_their_slots_and_leave_half_of_them_to_quick_domains() {
        let domains = domains();
        domains.begin(domain(100)).unwrap().is_answered();
        let slow = slow(&domains, 0..12).await;
        assert!(slow.iter().all(|page| !page.needs_slot()));
        let unknown: Vec<_> = (20..24).map(|number| domains.begin(domain(number)).unwrap()).collect();
        assert!(domains.begin(domain(101)).is_err(), "nobody knows whether it is quick");
        assert!(domains.begin(domain(100)).is_ok());
        drop(unknown);
        assert!(domains.begin(domain(101)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn domains_of_which_nothing_is_known_have_all_slots_while_no_page_is_slow() {
        let domains = domains();
        let pages: Vec<_> = (0..8).map(|number| domains.begin(domain(number)).unwrap()).collect();
        assert!(pages.iter().all(UnderWay::needs_slot));
        assert!(domains.begin(domain(8)).is_err());
        drop(pages);
        let _slow = slow(&domains, 0..2).await;
        assert_eq!(
            (10..20).map_while(|number| domains.begin(domain(number)).ok()).collect::<Vec<_>>().len(),
            6
        );
    }

    #[tokio::test(start_paused = true)]
    async fn slow_domains_have_as_many_places_as_they_leave_to_others() {
        let domains = domains();
        let mut pages = slow(&domains, 0..1).await;
        while let Ok(page) = domains.begin(domain(0)) {
            pages.push(page);
        }
        assert_eq!(pages.len(), 6, "half of the places");
        assert_eq!(domains.keeps_away(&domain(0)), Some(AWAY + APART), "one was put off already");
        assert_eq!(domains.keeps_away(&domain(1)), None);
        pages.extend(slow(&domains, 1..4).await);
        assert!(domains.begin(domain(1)).is_ok());
        assert!(domains.begin(domain(0)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn no_page_of_a_domain_is_given_up_that_is_alone() {
        let domains = domains();
        let mut pages: Vec<_> = (0..8).map(|_| domains.begin(domain(0)).unwrap()).collect();
        advance(SLOW).await;
        assert!(pages.iter_mut().all(|page| page.is_slow().is_ok()));
        assert_eq!(pages.iter().filter(|page| page.needs_slot()).count(), 2, "six go on in places");
        assert!(domains.begin(domain(1)).is_ok(), "there are slots for others");
    }

    #[tokio::test(start_paused = true)]
    async fn of_pages_that_prove_slow_without_a_place_a_quarter_of_the_slots_is_kept_and_the_others_are_given_up()
     {
        let domains = domains();
        domains.begin(domain(100)).unwrap().is_answered();
        let _slow = slow(&domains, 0..12).await;
        let stuck = [slow_page(&domains, 102).await.unwrap(), slow_page(&domains, 103).await.unwrap()];
        assert!(stuck.iter().all(UnderWay::needs_slot));
        for number in [100, 101] {
            assert_eq!(slow_page(&domains, number).await.err(), Some(AWAY));
        }
        assert_eq!(domains.begin(domain(104)).map(|page| page.needs_slot()).ok(), Some(true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_domain_that_has_not_answered_yet_has_few_places() {
        let domains = domains();
        let mut pages = Vec::new();
        while let Ok(page) = slow_page(&domains, 0).await {
            pages.push(page);
        }
        assert_eq!(pages.len(), UNANSWERED);
        pages[0].is_answered();
        assert!(domains.begin(domain(0)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn beside_slow_pages_a_domain_of_which_nothing_is_known_begins_with_one_page() {
        let domains = domains();
        let pages: Vec<_> = (0..8).map_while(|_| domains.begin(domain(0)).ok()).collect();
        assert_eq!(pages.len(), 8);
        drop(pages);
        let _slow = slow(&domains, 1..2).await;
        let pages: Vec<_> = (0..8).map_while(|_| domains.begin(domain(0)).ok()).collect();
        assert_eq!(pages.len(), 1);
        assert!(domains.begin(domain(2)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_domain_is_quick_again_when_its_pages_have_been_quick_for_a_minute() {
        let domains = domains();
        slow(&domains, 0..1).await.remove(0).is_answered();
        domains.begin(domain(0)).unwrap().is_answered();
        assert!(matches!(domains.speed(&domain(0)), Some(Speed::Slow(_))));
        advance(REMEMBERED + SLOW).await;
        domains.begin(domain(0)).unwrap().is_answered();
        assert_eq!(domains.speed(&domain(0)), Some(Speed::Quick));
    }

    #[tokio::test(start_paused = true)]
    async fn urls_that_are_put_off_come_back_one_after_the_other() {
        let domains = domains();
        let _slow = slow(&domains, 0..12).await;
        let mut away = Vec::new();
        for _ in 0..2_000 {
            away.extend(domains.begin(domain(0)).err());
        }
        assert_eq!((away[0], away[1], away[1_999]), (AWAY, AWAY + APART, LONGEST));
        assert_eq!(domains.begin(domain(1)).err(), Some(AWAY), "those of another come between them");
        assert_eq!(domains.begin(domain(1)).err(), Some(AWAY + APART * 2));
        advance(LONGEST).await;
        assert_eq!(domains.begin(domain(0)).err(), Some(AWAY));
        let _first = domains.begin(domain(50)).unwrap();
        let unknown = [(); 2].map(|()| domains.begin(domain(50)).err());
        assert_eq!(unknown, [Some(AWAY), Some(AWAY + CLOSE)], "it soon shows how fast it is");
    }
}
