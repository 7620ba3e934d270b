//! Which pages may begin, so that no slow site keeps the others waiting.
//!
//! A page that takes longer than a second is slow. It gives its fetch permit to others and goes on without one: there are places
//! for some hundred such pages, which cost a connection each and little else. A registrable domain whose pages were slow of late
//! begins in these places, and has no more of them than it leaves to others; one that has not answered a page yet has only a few.
//! Where nothing is known of a domain, its pages begin with fetch permits. All these together leave one permit free for each slow page,
//! up to half of all: those are for domains that are known to be quick.
//!
//! Hundreds of hosts may never answer, so each is tried before any is waited for. The last quarter of the places is for domains
//! of which nothing was known. Where none is left for such a page, it takes that of another first try, the one that has gone on for
//! longest, which is given up and asked for again later. Where there is none of these either it keeps its permit, unless a quarter of
//! all are kept so and other domains are slow too: then it is given up itself.
//!
//! What is not trusted is fetched on threads apart (`apart`), for an answer may keep one busy as long as it lasts. Where these
//! come a second late to what is due, slow pages of domains that have not answered are given up, all but as many as half of the threads.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::OptionFuture;
use moka::sync::Cache;
use tokio::sync::oneshot;
use tokio::time::Instant;
use trawl_common::settings;
use trawl_common::web::host::HostKey;
use trawl_web::Threads;

/// So many threads are apart, for each answer may keep one of them busy.
pub(crate) const FETCH_THREADS: usize = 32;

/// A page that takes longer is slow.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// A domain counts as slow for so long after its last slow page.
const REMEMBERED: Duration = Duration::from_secs(60);

/// So many pages of a domain may be slow at once that has answered none so far, and of another as long as first tries are.
const FEW: usize = 4;

/// So long a first try of a domain may be slow before it gives way to another.
const TRIED: Duration = Duration::from_secs(2);

/// So long no domain is trusted of which nothing is known, after one may have kept threads busy.
const WARY: Duration = Duration::from_secs(3_600);

/// Of so many domains it is known how fast they are.
const KNOWN: u64 = 10_000;

/// A URL that is put off comes back after this time at the earliest.
const AWAY: Duration = Duration::from_secs(1);

/// URLs that wait for a place for slow pages come back with this time between them, those of different domains in turn: of
/// thousands only some twenty a second ask again.
const APART: Duration = Duration::from_millis(50);

/// The same for URLs of one domain that wait for a fetch permit: its first page soon shows how fast it is.
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
    fetch_permits: usize,
    /// How many slow pages may be under way without a fetch permit.
    slow_places: usize,
    known: Cache<HostKey, Speed>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many pages are under way without a fetch permit, of each domain that has some.
    slow: Pages,
    /// How many fetch permits are taken by pages that may prove slow.
    unproven: Pages,
    /// How many fetch permits are kept by slow pages.
    stuck: Pages,
    /// First tries that are slow, in the order in which they proved so.
    trials: BTreeMap<u64, Trial>,
    /// How many there were.
    trial_count: u64,
    /// When a domain may have kept threads busy last.
    kept_busy: Option<Instant>,
    /// When the last of the URLs of a domain comes back that were put off.
    put_off: HashMap<HostKey, Instant>,
}

/// A slow page of a domain of which nothing was known.
struct Trial {
    domain: HostKey,
    since: Instant,
    /// Dropped when the page is to give way.
    _stays: oneshot::Sender<()>,
}

/// What a page takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// A fetch permit, for a domain that is quick.
    Permit,
    /// A fetch permit, for another.
    Unproven,
    /// A fetch permit, for a page that proved slow when there was no place.
    Stuck,
    /// A place among the slow pages.
    Slow,
}

impl Domains {
    pub(crate) fn new(worker: &settings::Worker) -> Self {
        Self {
            fetch_permits: worker.concurrency.into(),
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
            Some(Speed::Quick) => (Room::Permit, true),
            Some(Speed::Slow(_) | Speed::Silent(_)) => (Room::Slow, self.may_begin(&state, &domain)),
            None => {
                let slow = state.slow.all();
                let permits = self.fetch_permits - slow.min(self.fetch_permits / 2);
                // Beside slow pages the first has to show how fast it is, and leaves permits to other domains meanwhile.
                let most = if slow == 0 { usize::MAX } else { 1 };
                let taken = state.unproven.all() + state.stuck.all();
                (Room::Unproven, taken < permits && state.unproven.of(&domain) < most)
            }
        };
        if !is_free {
            return Err(state.put_off(&domain, room));
        }
        if room == Room::Slow {
            self.make_place(&mut state, &domain);
        }
        state.take(room, &domain);
        Ok(UnderWay { domain, began: Instant::now(), room, trial: None, domains: Arc::clone(self) })
    }

    /// How long a URL of `domain` is to stay away that could not begin for long: the domain is slow, and has no place.
    pub(crate) fn keeps_away(&self, domain: &HostKey) -> Option<Duration> {
        let Some(Speed::Slow(_) | Speed::Silent(_)) = self.speed(domain) else { return None };
        let mut state = self.state();
        (!self.may_begin(&state, domain)).then(|| state.put_off(domain, Room::Slow))
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

    /// Notes that a domain may have kept threads busy.
    pub(crate) fn kept_busy(&self, domain: HostKey) {
        let speed = Speed::slowed(self.speed(&domain));
        self.known.insert(domain, speed);
        self.state().kept_busy = Some(Instant::now());
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

    /// Whether another page of a slow domain may begin in such a place. One that has answered before has a few at the cost of first
    /// tries.
    fn may_begin(&self, state: &State, domain: &HostKey) -> bool {
        let has_few = state.slow.of(domain) < FEW;
        match self.is_silent(domain) {
            true => {
                let is_last_quarter = state.slow.all() >= self.slow_places - self.slow_places / 4;
                has_few && !is_last_quarter && self.has_place(state, domain)
            }
            false => self.has_place(state, domain) || has_few && self.oldest_trial(state).is_some(),
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

    /// Has that one give way, if there is no place for a page of `domain`.
    fn make_place(&self, state: &mut State, domain: &HostKey) {
        if !self.has_place(state, domain)
            && let Some(number) = self.oldest_trial(state)
        {
            state.leave_trial(number);
        }
    }

    /// Whether a slow page for which there is no place keeps its fetch permit.
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
            Room::Permit => {}
            Room::Unproven => self.unproven.add(domain),
            Room::Stuck => self.stuck.add(domain),
            Room::Slow => self.slow.add(domain),
        }
    }

    fn leave(&mut self, room: Room, domain: &HostKey) {
        match room {
            Room::Permit => {}
            Room::Unproven => self.unproven.remove(domain),
            Room::Stuck => self.stuck.remove(domain),
            Room::Slow => self.slow.remove(domain),
        }
    }

    /// Takes note of a first try. Returns its number, and what ends when it is to give way.
    fn begin_trial(&mut self, domain: &HostKey) -> (u64, oneshot::Receiver<()>) {
        let (stays, given_up) = oneshot::channel();
        self.trial_count += 1;
        let trial = Trial { domain: domain.clone(), since: Instant::now(), _stays: stays };
        self.trials.insert(self.trial_count, trial);
        (self.trial_count, given_up)
    }

    /// Frees the place of a first try, unless it had to give it up before.
    fn leave_trial(&mut self, number: u64) {
        if let Some(trial) = self.trials.remove(&number) {
            self.leave(Room::Slow, &trial.domain);
        }
    }

    /// How long a URL of `domain` is to stay away that finds no such room: fetch permits come free within a second, places for
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
    /// Its number as a first try, if it is one that is slow, and what ends when it is to give way.
    trial: Option<(u64, oneshot::Receiver<()>)>,
    domains: Arc<Domains>,
}

impl UnderWay {
    /// Whether it takes a fetch permit.
    pub(crate) fn needs_permit(&self) -> bool {
        self.room != Room::Slow
    }

    /// Notes that the page is slow: it goes on, if there is a place without a fetch permit, or is to be given up, and to stay away
    /// for so long.
    pub(crate) fn is_slow(&mut self) -> Result<(), Duration> {
        self.domains.known.insert(self.domain.clone(), Speed::slowed(self.domains.speed(&self.domain)));
        let mut state = self.domains.state();
        if self.room == Room::Slow {
            return Ok(());
        }
        let is_trial = self.room == Room::Unproven && self.domains.is_silent(&self.domain);
        if is_trial && state.slow.of(&self.domain) == 0 {
            self.domains.make_place(&mut state, &self.domain);
        }
        let room = match self.domains.has_place(&state, &self.domain) {
            true => Room::Slow,
            false if self.domains.may_stay(&state, &self.domain) => Room::Stuck,
            false => return Err(state.put_off(&self.domain, Room::Slow)),
        };
        state.leave(self.room, &self.domain);
        state.take(room, &self.domain);
        self.room = room;
        if is_trial && room == Room::Slow {
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
        self.domains.state().put_off(&self.domain, Room::Slow)
    }

    /// Whether its domain has not answered, and beside it are as many slow pages as may keep threads busy.
    fn is_one_too_many(&self) -> bool {
        let state = self.domains.state();
        state.slow.all() + state.stuck.all() > FETCH_THREADS / 2 && self.domains.is_silent(&self.domain)
    }

    /// Notes that the page was answered, after all this time.
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
            None => state.leave(self.room, &self.domain),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use futures::FutureExt;
    use tokio::time::advance;

    use super::*;

    /// Eight fetch permits, and places for twelve slow pages.
    fn domains() -> Arc<Domains> {
        let worker = settings::Worker { concurrency: 8, prefetch: 32, ..settings::Worker::default() };
        Arc::new(Domains::new(&worker))
    }

    fn threads() -> Threads {
        Threads::start(1).unwrap()
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
    async fn slow_pages_give_up_their_permits_and_leave_half_of_them_to_quick_domains() {
        let domains = domains();
        domains.begin(domain(100)).unwrap().is_answered();
        let slow = slow(&domains, 0..12).await;
        assert!(slow.iter().all(|page| !page.needs_permit()));
        let unknown: Vec<_> = (20..24).map(|number| domains.begin(domain(number)).unwrap()).collect();
        assert!(domains.begin(domain(101)).is_err(), "nobody knows whether it is quick");
        assert!(domains.begin(domain(100)).is_ok());
        drop(unknown);
        assert!(domains.begin(domain(101)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn domains_of_which_nothing_is_known_have_all_permits_while_no_page_is_slow() {
        let domains = domains();
        let pages: Vec<_> = (0..8).map(|number| domains.begin(domain(number)).unwrap()).collect();
        assert!(pages.iter().all(UnderWay::needs_permit));
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
        assert_eq!(pages.iter().filter(|page| page.needs_permit()).count(), 2, "six go on in places");
        assert!(domains.begin(domain(1)).is_ok(), "there are permits for others");
    }

    #[tokio::test(start_paused = true)]
    async fn of_pages_that_prove_slow_without_a_place_a_quarter_of_the_permits_is_kept_and_the_others_are_given_up()
     {
        let domains = domains();
        domains.begin(domain(100)).unwrap().is_answered();
        let _slow = slow(&domains, 0..12).await;
        let stuck = [slow_page(&domains, 102).await.unwrap(), slow_page(&domains, 103).await.unwrap()];
        assert!(stuck.iter().all(UnderWay::needs_permit));
        for number in [100, 101] {
            assert_eq!(slow_page(&domains, number).await.err(), Some(AWAY));
        }
        assert_eq!(domains.begin(domain(104)).map(|page| page.needs_permit()).ok(), Some(true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_domain_that_has_not_answered_yet_has_few_places() {
        let domains = domains();
        let mut pages = Vec::new();
        while let Ok(page) = slow_page(&domains, 0).await {
            pages.push(page);
        }
        assert_eq!(pages.len(), FEW);
        pages[0].is_answered();
        assert!(domains.begin(domain(0)).is_ok());
    }

    /// A page of each of these domains, which never answer.
    async fn silent(domains: &Arc<Domains>, numbers: Range<usize>) -> Vec<UnderWay> {
        let mut pages: Vec<_> = numbers.map(|number| domains.begin(domain(number)).unwrap()).collect();
        advance(SLOW).await;
        assert!(pages.iter_mut().all(|page| page.is_slow().is_ok()));
        pages
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_quarter_of_the_places_is_for_domains_that_have_not_been_tried() {
        let domains = domains();
        let mut pages = silent(&domains, 0..4).await;
        pages.extend(silent(&domains, 4..8).await);
        assert!(domains.begin(domain(0)).is_ok());
        pages.extend(silent(&domains, 8..9).await);
        assert!(domains.begin(domain(0)).is_err(), "it was tried");
        pages.extend(silent(&domains, 9..12).await);
        assert!(pages.iter().all(|page| !page.needs_permit()));
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_places_are_taken_the_oldest_first_try_gives_way_to_another() {
        let domains = domains();
        let mut pages = Vec::new();
        for first in [0, 4, 8] {
            pages.extend(silent(&domains, first..first + 4).await);
        }
        let (of_first, of_second) = (pages[0].domain.clone(), pages[1].domain.clone());
        assert!(!slow_page(&domains, 20).await.unwrap().needs_permit());
        let away = pages[0].gives_way(&threads()).await;
        assert!((AWAY..LONGEST).contains(&away), "{away:?}");
        drop(pages.remove(0));
        assert!(domains.state().slow.of(&of_first) == 0 && domains.state().slow.of(&of_second) == 1);
        assert_eq!(domains.slow(), 11, "one was given up, and the one that took its place is over");
    }

    #[tokio::test(start_paused = true)]
    async fn where_first_tries_have_taken_all_places_one_gives_way_to_a_slow_domain_that_has_answered() {
        let domains = domains();
        slow(&domains, 20..21).await;
        let mut pages = Vec::new();
        for first in [0, 4, 8] {
            pages.extend(silent(&domains, first..first + 4).await);
        }
        assert_eq!(domains.keeps_away(&domain(20)), None);
        let few: Vec<_> = (0..FEW).map(|_| domains.begin(domain(20)).unwrap()).collect();
        assert!(domains.keeps_away(&domain(20)).is_some());
        assert!(pages[..FEW].iter_mut().all(|page| page.gives_way(&threads()).now_or_never().is_some()));
        assert!(few.iter().all(|page| !page.needs_permit()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_try_does_not_give_way_at_once_nor_when_its_domain_has_answered() {
        let domains = domains();
        let mut pages = silent(&domains, 0..4).await;
        for page in &pages {
            page.is_answered();
        }
        pages.extend(silent(&domains, 4..8).await);
        pages.extend(silent(&domains, 8..12).await);
        let late = silent(&domains, 20..21).await;
        assert!(pages[..4].iter_mut().all(|page| page.gives_way(&threads()).now_or_never().is_none()));
        assert!(pages[4].gives_way(&threads()).now_or_never().is_some());
        assert!(!late[0].needs_permit());
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
    async fn once_threads_were_kept_busy_only_a_domain_is_trusted_that_is_quick() {
        let domains = domains();
        let first = domains.begin(domain(0)).unwrap();
        assert!(domains.is_trusted(&domain(0)));
        let second = domains.begin(domain(0)).unwrap();
        assert!(!domains.is_trusted(&domain(0)), "two pages at once");
        first.is_answered();
        assert!(domains.is_trusted(&domain(0)));
        domains.kept_busy(domain(1));
        assert!(domains.is_trusted(&domain(0)) && !domains.is_trusted(&domain(1)));
        assert!(!domains.is_trusted(&domain(2)));
        advance(WARY).await;
        assert!(domains.is_trusted(&domain(1)) && domains.is_trusted(&domain(2)));
        drop(second);
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
