//! The state of a crawl by the rules.

use std::collections::{BTreeMap, BTreeSet};

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::Skip;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::{Context, End, Finished, PagesLeft, Record, State, Taken, UrlState, Watermark};
use trawl_common::names::WorkerId;
use trawl_common::time::UnixMs;

use super::{AGAIN, BEGINNING, Ending, Kind, LOST_AFTER, PAUSE_WAIT, SEEN, Sender, Setup, URLS};

/// The reason for looking up a URL without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A source or a page names it, or a message that asks for nothing.
    Named,
    /// Somebody asks for it by hand.
    Requested,
    /// Whether it has ended.
    Ended,
}

/// A crawl, and what its spider has seen.
pub(super) struct Rules {
    setup: Setup,
    pub(super) now: UnixMs,
    pub(super) status: CrawlState,
    /// Whether all sources are read.
    pub(super) is_closed: bool,
    pub(super) paused: UnixMs,
    pub(super) records: BTreeMap<usize, Record>,
    /// The URLs that the spider has seen.
    pub(super) seen: BTreeSet<usize>,
    /// The URLs that a recrawl has seen itself.
    own: BTreeSet<usize>,
    /// The time when each request was last submitted, or fetched.
    asked: BTreeMap<usize, UnixMs>,
    /// The URLs that the spider forgets when the crawl is over.
    gone: BTreeSet<usize>,
    /// The dead letters.
    pub(super) listed: BTreeMap<usize, End>,
    pub(super) counts: Counts,
    /// Requests that came again too soon.
    pub(super) repeats: u64,
}

impl Rules {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            setup: setup.clone(),
            now: BEGINNING,
            status: CrawlState::Running,
            is_closed: false,
            paused: BEGINNING,
            records: BTreeMap::new(),
            seen: (0..SEEN).collect(),
            own: BTreeSet::new(),
            asked: BTreeMap::new(),
            gone: BTreeSet::new(),
            listed: BTreeMap::new(),
            counts: Counts::default(),
            repeats: 0,
        }
    }

    fn context(&self) -> Context {
        let begun = self.records.values().filter(|record| record.has_begun).count() as u64;
        Context {
            now: self.now,
            lost_after: LOST_AFTER,
            status: self.status,
            pages_left: self
                .setup
                .max_pages
                .map(|most| PagesLeft { left: most.saturating_sub(self.counts.done), begun }),
            is_recovering: self.setup.is_recovering,
            pause_wait: PAUSE_WAIT,
        }
    }

    /// Returns the way in which a message's URL is looked up.
    pub(super) fn look_of(&self, sender: Sender) -> Look {
        if self.setup.kind == Kind::Adhoc && sender != Sender::Link { Look::Requested } else { Look::Named }
    }

    pub(super) fn find(&self, number: usize, look: Look) -> UrlState {
        let requested = || UrlState::requested(self.asked.get(&number).copied(), AGAIN, self.now);
        let is_past = match (self.setup.kind, look) {
            _ if self.records.contains_key(&number) => {
                return UrlState::Pending(self.records[&number].clone());
            }
            (Kind::Recrawl, _) => self.own.contains(&number),
            (Kind::Adhoc, Look::Requested) => return requested(),
            (Kind::Adhoc, Look::Ended) => self.seen.contains(&number) || requested() == UrlState::Ended,
            (Kind::Once | Kind::Adhoc, _) => self.seen.contains(&number),
        };
        if is_past { UrlState::Ended } else { UrlState::Unseen }
    }

    /// Whether a worker takes it for seen.
    pub(super) fn has_seen(&self, number: usize) -> bool {
        match self.setup.kind {
            Kind::Once => self.seen.contains(&number),
            Kind::Recrawl => self.own.contains(&number),
            Kind::Adhoc => {
                UrlState::requested(self.asked.get(&number).copied(), AGAIN, self.now) == UrlState::Ended
            }
        }
    }

    /// Applies a rule to a URL.
    pub(super) fn apply<T>(
        &mut self,
        number: usize,
        look: Look,
        rule: impl FnOnce(&mut UrlState, &Context) -> T,
    ) -> T {
        let mut url = self.find(number, look);
        let was_unseen = url == UrlState::Unseen;
        let reply = rule(&mut url, &self.context());
        match url {
            UrlState::Pending(record) => {
                if was_unseen {
                    self.learn(number);
                    self.counts.admitted += 1;
                }
                self.records.insert(number, record);
            }
            UrlState::Unseen | UrlState::Ended => drop(self.records.remove(&number)),
        }
        reply
    }

    /// Applies a rule to URLs that have records, or should have: one after the other.
    pub(super) fn apply_all<T>(
        &mut self,
        numbers: &[usize],
        rule: impl Fn(&mut UrlState, &Context) -> T,
    ) -> Vec<T> {
        numbers.iter().map(|&number| self.apply(number, Look::Named, &rule)).collect()
    }

    /// Applies what comes of a message.
    pub(super) fn receive<T>(
        &mut self,
        number: usize,
        sender: Sender,
        rule: impl FnOnce(&mut UrlState, &Context) -> T,
    ) -> T {
        let had_record = self.records.contains_key(&number);
        let reply = self.apply(number, self.look_of(sender), rule);
        if self.setup.kind == Kind::Adhoc && !had_record && self.records.contains_key(&number) {
            self.asked.insert(number, self.now);
        }
        reply
    }

    /// Whether a stranger's message asks again too soon.
    pub(super) fn is_repeat(&self, number: usize, sender: Sender) -> bool {
        self.setup.kind == Kind::Adhoc
            && sender == Sender::Stranger
            && !self.status.is_over()
            && self.find(number, Look::Requested) == UrlState::Ended
    }

    /// Notes that a URL is no longer new to the crawl.
    fn learn(&mut self, number: usize) {
        let seen = if self.setup.kind == Kind::Recrawl { &mut self.own } else { &mut self.seen };
        seen.insert(number);
    }

    pub(super) fn follow(
        &mut self,
        worker: &WorkerId,
        page: usize,
        links: &[(usize, Lane, Option<UnixMs>)],
    ) -> Option<Vec<Taken>> {
        if !self.find(page, Look::Named).takes_links(worker, &self.context()) {
            return None;
        }
        let take = |&(number, lane, deadline): &(usize, Lane, Option<UnixMs>)| {
            let has_space = self.setup.max_per_host.is_none_or(|most| self.counts.admitted < most);
            self.apply(number, Look::Named, |url, context| url.admit(lane, deadline, has_space, context))
        };
        Some(links.iter().map(take).collect())
    }

    /// Returns whether each has ended.
    pub(super) fn finish(&mut self, worker: &WorkerId, numbers: &[usize], ending: Ending) -> Vec<bool> {
        let why = ending.why.map(Skip::as_str);
        let mut ends = Vec::new();
        let finish = |&number: &usize| {
            let finished = self
                .apply(number, Look::Ended, |url, context| url.finish(worker, ending.terminal, why, context));
            if let Finished::Now(end) = finished {
                self.count(number, end);
                ends.push((number, end));
            }
            finished != Finished::NotHeld
        };
        let reply = numbers.iter().map(finish).collect();
        for (number, end) in ends {
            self.note_end(number, end, ending.landed);
        }
        self.end_if_done();
        reply
    }

    /// Ends the crawl once its sources are read and no record is left.
    pub(super) fn end_if_done(&mut self) {
        let is_done = self.is_closed && self.records.is_empty() && !self.setup.is_recovering;
        if is_done && self.status == CrawlState::Running {
            self.status = CrawlState::Finished;
        }
    }

    fn count(&mut self, number: usize, end: End) {
        *self.counts.of(end.terminal) += 1;
        if end.is_listed() {
            self.listed.insert(number, end);
        }
    }

    /// Notes the consequences of an end for later crawls.
    fn note_end(&mut self, number: usize, end: End, landed: Option<usize>) {
        self.seen.extend(landed);
        match self.setup.kind {
            Kind::Once if !end.stays_seen => drop(self.gone.insert(number)),
            Kind::Once => {}
            Kind::Recrawl => {
                self.own.extend(landed);
                self.seen.extend(end.stays_seen.then_some(number));
            }
            Kind::Adhoc => {
                if !end.stays_seen {
                    self.seen.remove(&number);
                }
                self.asked.extend([Some(number), landed].into_iter().flatten().map(|url| (url, self.now)));
            }
        }
    }

    /// Returns the lost records.
    pub(super) fn sweep(&mut self, watermark: impl Fn(SourceQueue) -> Watermark) -> BTreeSet<usize> {
        let is_lost =
            |&number: &usize| self.apply(number, Look::Named, |url, context| url.sweep(&watermark, context));
        (0..URLS).filter(is_lost).collect()
    }

    /// Returns whether there was a dead letter.
    pub(super) fn replay(&mut self, number: usize) -> bool {
        if self.records.contains_key(&number) {
            return false;
        }
        let Some(end) = self.listed.remove(&number) else { return false };
        *self.counts.of(end.terminal) -= 1;
        self.records.insert(number, Record::new(State::New { since: self.now }, Lane::Bulk, None));
        self.learn(number);
        self.gone.remove(&number);
        true
    }

    pub(super) fn resume(&mut self) {
        self.status = CrawlState::Running;
        let pause = self.now.since(self.paused);
        for record in self.records.values_mut() {
            record.deadline = record.deadline.map(|deadline| deadline.plus(pause));
        }
        self.end_if_done();
    }

    pub(super) fn clear(&mut self) {
        if let Some(end) = self.context().end_of_rest() {
            for number in std::mem::take(&mut self.records).into_keys() {
                self.count(number, end);
                if self.setup.kind != Kind::Recrawl {
                    self.gone.insert(number);
                }
            }
        }
        if !self.status.is_over() {
            self.end_if_done();
            return;
        }
        if self.gone.is_empty() {
            self.own.clear();
            self.asked.clear();
        }
        for number in std::mem::take(&mut self.gone) {
            self.seen.remove(&number);
        }
    }
}
