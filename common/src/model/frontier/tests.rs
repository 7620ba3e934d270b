//! The laws of the transitions, whatever is called in whatever order, and the rows of the table that an order of calls
//! seldom meets.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::frontier::crawl::CrawlState;
use crate::frontier::lane::Lane;
use crate::frontier::message::Message;
use crate::frontier::outcome::{Skip, Terminal};
use crate::frontier::source_queue::SourceQueue;
use crate::names::{CrawlRef, WorkerId};
use crate::time::UnixMs;

const LOST_AFTER: Duration = Duration::from_secs(60);
const POSSESSION: Duration = Duration::from_secs(15);
const MAX_PAGES: u64 = 2;
const URLS: usize = 4;

fn context(now: UnixMs) -> Context {
    Context {
        now,
        lost_after: LOST_AFTER,
        status: CrawlState::Running,
        pages_left: None,
        is_recovering: false,
        pause_wait: LOST_AFTER,
    }
}

fn message() -> Message {
    Message::seed("http://site.example/".parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk)
}

fn worker(number: usize) -> WorkerId {
    format!("worker-{number}").parse().unwrap()
}

/// A call by one of two workers about one of a few URLs.
#[derive(Clone, Copy, Debug)]
enum Call {
    Admit,
    Confirm,
    Claim(usize),
    Extend(usize),
    Start(usize),
    Park(usize, bool),
    Release(usize),
    Finish(usize, Terminal),
    Sweep,
    Pause,
    Resume,
    Pass(Duration),
}

fn calls() -> impl Strategy<Value = Vec<(usize, Call)>> {
    let who = || 0..2_usize;
    let call = prop_oneof![
        1 => Just(Call::Admit),
        1 => Just(Call::Confirm),
        4 => who().prop_map(Call::Claim),
        1 => who().prop_map(Call::Extend),
        4 => who().prop_map(Call::Start),
        1 => (who(), any::<bool>()).prop_map(|(who, failed)| Call::Park(who, failed)),
        1 => who().prop_map(Call::Release),
        2 => (who(), prop::sample::select(&Terminal::ALL[..])).prop_map(|(who, end)| Call::Finish(who, end)),
        1 => Just(Call::Sweep),
        1 => Just(Call::Pause),
        2 => Just(Call::Resume),
        2 => (0..40_u64).prop_map(|seconds| Call::Pass(Duration::from_secs(seconds))),
    ];
    prop::collection::vec((0..URLS, call), 1..120)
}

/// A crawl that may do [`MAX_PAGES`], as its stats see it.
struct World {
    urls: Vec<UrlState>,
    now: UnixMs,
    status: CrawlState,
    admitted: u64,
    ended: u64,
    done: u64,
    /// The number of starts without an end, by URL.
    unended: [u32; URLS],
}

impl World {
    fn new() -> Self {
        Self {
            urls: vec![UrlState::Unseen; URLS],
            now: UnixMs(1_000_000),
            status: CrawlState::Running,
            admitted: 0,
            ended: 0,
            done: 0,
            unended: [0; URLS],
        }
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.urls.iter().filter_map(|url| match url {
            UrlState::Pending(record) => Some(record),
            UrlState::Unseen | UrlState::Ended => None,
        })
    }

    fn begun(&self) -> u64 {
        self.records().filter(|record| record.has_begun).count() as u64
    }

    fn has_started(&self, at: usize) -> bool {
        matches!(
            &self.urls[at],
            UrlState::Pending(Record { state: State::Held { has_started: true, .. }, .. })
        )
    }

    fn take(&mut self, at: usize, call: Call) {
        let pages_left = Some(PagesLeft { left: MAX_PAGES - self.done, begun: self.begun() });
        let context = Context { status: self.status, pages_left, ..context(self.now) };
        let (before, had_started) = (self.urls[at].clone(), self.has_started(at));
        let url = &mut self.urls[at];
        match call {
            Call::Admit => drop(url.admit(Lane::Bulk, None, true, &context)),
            Call::Confirm => {
                let wake = match url {
                    UrlState::Pending(Record { state: State::Parked { until, .. }, .. }) => Some(*until),
                    _ => None,
                };
                url.confirm(wake);
            }
            Call::Claim(who) => drop(url.claim(&worker(who), &message(), &context)),
            Call::Extend(who) => {
                if !url.extend(&worker(who), &message(), &context) && has_lapsed(&before, who) {
                    self.unended[at] = self.unended[at].saturating_sub(u32::from(*url != before));
                }
            }
            Call::Start(who) => {
                if url.start(&worker(who), &context) == StartReply::Go && !had_started {
                    self.unended[at] += 1;
                }
            }
            Call::Park(who, failed) => {
                let is_told_before =
                    matches!(before, UrlState::Pending(Record { state: State::Parked { .. }, .. }));
                let until = self.now.plus(Duration::from_secs(7));
                if url.park(&worker(who), until, failed, &context) && had_started && !is_told_before {
                    self.unended[at] = 0;
                }
            }
            Call::Release(who) => {
                url.release(&worker(who), &context);
                if had_started && *url != before {
                    self.unended[at] = 0;
                }
            }
            Call::Finish(who, terminal) => {
                // Only what was started has been fetched.
                let terminal = if had_started { terminal } else { Terminal::Skipped };
                if let Finished::Now(end) = url.finish(&worker(who), terminal, None, &context) {
                    self.ended += 1;
                    self.done += u64::from(end.terminal == Terminal::Done);
                }
            }
            Call::Sweep => drop(url.sweep(|_| Watermark::default(), &context)),
            Call::Pause => self.status = CrawlState::Paused,
            Call::Resume => self.status = CrawlState::Running,
            Call::Pass(time) => self.now = self.now.plus(time),
        }
        self.admitted += u64::from(before == UrlState::Unseen && self.urls[at] != UrlState::Unseen);
        self.obeys(at, call, &before);
    }

    fn obeys(&self, at: usize, call: Call, before: &UrlState) {
        let url = &self.urls[at];
        assert_eq!(self.admitted, self.records().count() as u64 + self.ended, "the stats are exact");
        assert!(*before != UrlState::Ended || *url == UrlState::Ended, "nothing ends twice");
        assert!(self.begun() + self.done <= MAX_PAGES, "no more pages begin than may be done");
        if let UrlState::Pending(record) = url {
            assert_eq!(record.starts, self.unended[at], "starts without an end count, and no other");
            assert!(record.starts <= MAX_STARTS, "poison does not start");
        }
        let (Call::Start(who) | Call::Park(who, _) | Call::Release(who) | Call::Finish(who, _)) = call else {
            return;
        };
        let holder = match before {
            UrlState::Pending(Record { state: State::Held { by, .. }, .. }) => Some(by),
            _ => None,
        };
        assert!(url == before || holder == Some(&worker(who)), "only the holder decides");
    }
}

proptest! {
    #[test]
    fn whatever_is_called_the_stats_are_exact_and_only_the_holder_decides(calls in calls()) {
        let mut world = World::new();
        for (at, call) in calls {
            world.take(at, call);
        }
    }
}

/// Returns whether a worker's start of a URL has lapsed.
fn has_lapsed(url: &UrlState, who: usize) -> bool {
    matches!(url, UrlState::Pending(record) if record.lapsed.contains(&worker(who)))
}

/// Its machine stood still, it was stopped, or cut off: each time for longer than its leases last.
#[test]
fn a_worker_that_lives_after_all_makes_no_poison() {
    let mut url = held_after(0);
    let mut now = context(UnixMs(1_000_000));
    for _ in 0..2 * MAX_STARTS {
        for (who, other) in [(0, 1), (1, 0)] {
            assert_eq!(url.start(&worker(who), &now), StartReply::Go);
            now.now = now.now.plus(now.possession() + Duration::from_secs(1));
            let taken = url.claim(&worker(other), &message(), &now);
            assert!(matches!(taken, ClaimReply::Take { .. }), "{taken:?}");
            for _ in 0..2 {
                assert!(!url.extend(&worker(who), &message(), &now), "another holds it");
            }
        }
    }
    let UrlState::Pending(record) = url else { panic!("{url:?}") };
    assert_eq!((record.starts, record.lapsed), (0, Vec::new()));
}

#[test]
fn a_worker_that_says_nothing_any_more_makes_a_step_towards_poison_whoever_sweeps() {
    let mut url = held_after(0);
    let mut now = context(UnixMs(1_000_000));
    for starts in 1..=MAX_STARTS {
        assert_eq!(url.start(&worker(0), &now), StartReply::Go);
        now.now = now.now.plus(now.lost_after + Duration::from_secs(1));
        assert!(url.sweep(|_| Watermark::default(), &now));
        assert!(!url.extend(&worker(1), &message(), &now), "it never held it");
        let taken = url.claim(&worker(0), &message(), &now);
        assert!(matches!(taken, ClaimReply::Take { starts: counted, .. } if counted == starts), "{taken:?}");
    }
    assert_eq!(url.start(&worker(0), &now), StartReply::Poison);
}

/// Returns a URL with this number of starts without an end, held by the first worker.
fn held_after(starts: u32) -> UrlState {
    let state = State::Held { by: worker(0), since: UnixMs(0), has_started: false };
    UrlState::Pending(Record { starts, ..Record::new(state, Lane::Bulk, None) })
}

#[test]
fn a_suspect_is_skipped_at_the_limit_and_poison_before_it_even_if_no_place_is_free() {
    let at = |left, begun| Context { pages_left: Some(PagesLeft { left, begun }), ..context(UnixMs(0)) };
    let start = |starts, context| held_after(starts).start(&worker(0), &context);
    assert_eq!(start(MAX_STARTS, at(0, 0)), StartReply::Full);
    assert_eq!(start(MAX_STARTS, at(1, 1)), StartReply::Poison);
    assert_eq!(start(MAX_STARTS - 1, at(1, 1)), StartReply::Awaited);
    assert_eq!(start(MAX_STARTS - 1, at(1, 0)), StartReply::Go);
}

#[test]
fn a_page_fetched_beyond_the_limit_is_skipped_and_stays_seen() {
    let full = Context { pages_left: Some(PagesLeft { left: 0, begun: 0 }), ..context(UnixMs(0)) };
    let limit = Some(Skip::Limit.as_str());
    let finish = |terminal, why| held_after(1).finish(&worker(0), terminal, why, &full);
    let end = |stays_seen| Finished::Now(End { terminal: Terminal::Skipped, why: limit, stays_seen });
    assert_eq!(finish(Terminal::Done, None), end(true));
    assert_eq!(finish(Terminal::Skipped, limit), end(false), "it was not even asked for");
}

#[test]
fn what_was_not_asked_for_is_found_again() {
    for terminal in Terminal::ALL {
        let is_dropped = matches!(terminal, Terminal::Expired | Terminal::Cancelled);
        assert_eq!(End::new(terminal, None).stays_seen, !is_dropped);
    }
    assert!(!End::new(Terminal::Skipped, Some(Skip::Blocked.as_str())).stays_seen);
    assert!(End::new(Terminal::Skipped, Some(Skip::Robots.as_str())).stays_seen);
}

#[test]
fn what_is_left_of_a_full_crawl_is_skipped_but_not_in_a_pause() {
    let full = Context { pages_left: Some(PagesLeft { left: 0, begun: 0 }), ..context(UnixMs(0)) };
    let end = |status| Context { status, ..full }.end_of_rest().map(|end| end.terminal);
    assert_eq!(end(CrawlState::Running), Some(Terminal::Skipped));
    assert_eq!(end(CrawlState::Paused), None);
    assert_eq!(end(CrawlState::Cancelled), Some(Terminal::Cancelled));
    assert_eq!(context(UnixMs(0)).end_of_rest(), None);
}

#[test]
fn a_lease_is_anothers_until_it_has_lapsed() {
    let lapses = UnixMs(0).plus(POSSESSION);
    let claim = |now| held_after(0).claim(&worker(1), &message(), &context(now));
    assert_eq!(claim(lapses), ClaimReply::Wait { until: UnixMs(lapses.0 + 1) });
    assert_eq!(claim(UnixMs(lapses.0 + 1)), ClaimReply::Take { attempts: 0, starts: 0, deadline: None });
}

#[test]
fn before_its_time_a_parked_url_keeps_its_own_message_and_drops_copies() {
    let until = UnixMs(60_000);
    let parked = || {
        UrlState::Pending(Record::new(
            State::Parked { until, unconfirmed: None, in_pause: false },
            Lane::Bulk,
            None,
        ))
    };
    let claim = |wake, now| parked().claim(&worker(0), &Message { wake, ..message() }, &context(UnixMs(now)));
    assert_eq!(claim(None, 0), ClaimReply::Drop);
    assert_eq!(claim(Some(until), 0), ClaimReply::Wait { until });
    assert_eq!(claim(None, 55_000), ClaimReply::Take { attempts: 0, starts: 0, deadline: None });
}

#[test]
fn what_a_probe_has_passed_is_lost_after_a_patience_and_at_once_if_the_queue_lost_it() {
    let queued =
        || UrlState::Pending(Record::new(State::Queued { since: UnixMs(1_000) }, Lane::Priority, None));
    let watermark = |delivered, lost_before| {
        move |source| match source {
            SourceQueue::Priority => {
                Watermark { delivered: UnixMs(delivered), lost_before: UnixMs(lost_before) }
            }
            _ => Watermark { delivered: UnixMs(u64::MAX), lost_before: UnixMs(u64::MAX) },
        }
    };
    let later = context(UnixMs(200_000));
    assert!(!queued().sweep(watermark(61_000, 1_000), &later));
    assert!(queued().sweep(watermark(61_001, 1_000), &later));
    assert!(queued().sweep(watermark(61_000, 1_001), &later));
}

#[test]
fn a_link_that_was_seen_is_not_left_out() {
    let admit = |mut url: UrlState, has_space| url.admit(Lane::Bulk, None, has_space, &context(UnixMs(0)));
    assert_eq!(admit(UrlState::Unseen, false), Taken::LeftOut);
    assert_eq!(admit(UrlState::Unseen, true), Taken::New);
    assert_eq!(admit(UrlState::Ended, false), Taken::Seen);
}
