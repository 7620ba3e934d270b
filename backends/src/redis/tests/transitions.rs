//! The scripts do what `trawl_common::frontier` says: the same calls at the same times give the same answers and leave the same
//! records.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::dead_letter::{Cause, Note};
use trawl_common::frontier::line::Line;
use trawl_common::frontier::outcome::{Reason, Skip, Terminal};
use trawl_common::frontier::{Context, End, Finished, Passed, Record, Room, State, UrlState};
use trawl_common::frontier::{Start, Taken};
use trawl_common::ports::{Control, ErrorKind, Finish, Stats};
use trawl_common::time::UnixMs;
use trawl_engine::Parking;

use super::*;
use crate::redis::keys::CrawlKeys;
use crate::redis::look::Tides;
use crate::redis::sweep::Round;

/// The clock is what the key `now` says, in us.
const SET: Clock = Clock("local function now_us() return tonumber(redis.call('GET', 'now')) end\n");

const URLS: usize = 5;
/// Late enough that what was sent days ago was sent after 1970.
const BEGINNING: UnixMs = UnixMs(1_800_000_000_000);
/// What a message waits in a pause: eight patiences.
const PAUSE_WAIT: Duration = Duration::from_secs(480);

/// A call about some URLs, by one of two workers where it is a worker's.
#[derive(Clone, Debug)]
enum Step {
    Admit(Vec<usize>),
    Confirm(Vec<usize>),
    Hear(usize, Vec<usize>),
    Keep(usize, Vec<usize>),
    Start(usize, Vec<usize>),
    /// For so many ms, because they failed or not.
    Park(usize, Vec<usize>, u64, bool),
    Release(usize, Vec<usize>),
    Finish(usize, Vec<usize>, Terminal, Option<Skip>),
    /// For how many ms probes have come back: through all lines, and after a gap.
    Sweep([(u64, u64); 3]),
    Replay(usize),
    Pause,
    Resume,
    /// So that those who hold something meet a cancelled crawl before it is cleared up.
    Cancel,
    Clear,
    Pass(u64),
}

/// Times around those that decide something, in ms.
fn time() -> impl Strategy<Value = u64> {
    select(&[0, 1, 4_999, 5_000, 5_001, 14_999, 15_000, 15_001, 40_000, 59_999, 60_000, 60_001, 200_000][..])
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = || 0..2_usize;
    let some = || subsequence((0..URLS).collect::<Vec<_>>(), 1..=3);
    let ends = [
        (Terminal::Done, None),
        (Terminal::Done, None),
        (Terminal::Skipped, Some(Skip::Robots)),
        (Terminal::Skipped, Some(Skip::Blocked)),
        (Terminal::Skipped, Some(Skip::Limit)),
        (Terminal::Failed, None),
        (Terminal::Expired, None),
        (Terminal::Cancelled, None),
    ];
    let finish = (who(), some(), select(ends.to_vec()));
    let step = prop_oneof![
        10 => some().prop_map(Step::Admit),
        6 => some().prop_map(Step::Confirm),
        20 => (who(), some()).prop_map(|(who, urls)| Step::Hear(who, urls)),
        6 => (who(), some()).prop_map(|(who, urls)| Step::Keep(who, urls)),
        20 => (who(), some()).prop_map(|(who, urls)| Step::Start(who, urls)),
        8 => (who(), some(), time(), any::<bool>())
            .prop_map(|(who, urls, ms, failed)| Step::Park(who, urls, ms, failed)),
        5 => (who(), some()).prop_map(|(who, urls)| Step::Release(who, urls)),
        8 => finish.prop_map(|(who, urls, (terminal, why))| Step::Finish(who, urls, terminal, why)),
        8 => [(time(), time()), (time(), time()), (time(), time())].prop_map(Step::Sweep),
        5 => (0..URLS).prop_map(Step::Replay),
        3 => Just(Step::Pause),
        6 => Just(Step::Resume),
        1 => Just(Step::Cancel),
        2 => Just(Step::Clear),
        15 => time().prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..60)
}

/// A frontier, and what it must hold.
struct Pair {
    link: Link,
    frontier: RedisRecords,
    lease: Lease,
    crawl: CrawlRef,
    now: UnixMs,
    status: CrawlState,
    paused: UnixMs,
    is_recovering: bool,
    max_pages: Option<u64>,
    urls: BTreeMap<usize, UrlState>,
    ends: BTreeMap<usize, End>,
    listed: BTreeSet<usize>,
    counts: Counts,
}

impl Pair {
    async fn new(link: Link, max_pages: Option<u64>, is_recovering: bool) -> Self {
        let crawl = CrawlRef { id: "c".parse().unwrap(), spider: SpiderName::default() };
        let frontier = RedisRecords::with_clock(link.clone(), SET, PATIENCE, Dedup::Plain);
        let () = redis::cmd("FLUSHDB").query_async(&mut link.clone()).await.unwrap();
        set_clock(&link, BEGINNING).await;
        let terms = Terms { max_pages: max_pages.and_then(NonZeroU64::new), ..Terms::default() };
        let lease = frontier.open(&crawl, terms, "producer", 1000 * HOUR).await.unwrap();
        let pair = Self {
            link,
            frontier,
            lease,
            crawl,
            now: BEGINNING,
            status: CrawlState::Running,
            paused: BEGINNING,
            is_recovering,
            max_pages,
            urls: (0..URLS).map(|number| (number, UrlState::Unseen)).collect(),
            ends: BTreeMap::new(),
            listed: BTreeSet::new(),
            counts: Counts::default(),
        };
        if is_recovering {
            let () = pair.ask("HSET", |keys| keys.crawl, &["barrier", "1"]).await;
        }
        pair
    }

    async fn ask<T: FromRedisValue>(
        &self,
        command: &str,
        key: impl Fn(CrawlKeys) -> String,
        args: &[&str],
    ) -> T {
        let mut command = redis::cmd(command);
        command.arg(key(CrawlKeys::new(&self.crawl))).arg(args);
        command.query_async(&mut self.link.clone()).await.unwrap()
    }

    fn context(&self) -> Context {
        let begun = self.records().filter(|(_, record)| record.has_begun).count() as u64;
        Context {
            now: self.now,
            patience: PATIENCE,
            status: self.status,
            room: self.max_pages.map(|most| Room { left: most.saturating_sub(self.counts.done), begun }),
            is_recovering: self.is_recovering,
            pause_wait: PAUSE_WAIT,
        }
    }

    fn records(&self) -> impl Iterator<Item = (usize, &Record)> {
        self.urls.iter().filter_map(|(number, url)| match url {
            UrlState::Pending(record) => Some((*number, record)),
            UrlState::Unseen | UrlState::Ended => None,
        })
    }

    /// What the rules say of each URL, one after the other.
    fn rule<T>(&mut self, numbers: &[usize], rule: impl Fn(&mut UrlState, usize, &Context) -> T) -> Vec<T> {
        let apply = |&number: &usize| {
            let context = self.context();
            let url = self.urls.get_mut(&number).unwrap();
            let was_unseen = *url == UrlState::Unseen;
            let told = rule(url, number, &context);
            self.counts.admitted += u64::from(was_unseen && *url != UrlState::Unseen);
            told
        };
        numbers.iter().map(apply).collect()
    }

    fn note_end(&mut self, number: usize, end: End) {
        *self.counts.of(end.terminal) += 1;
        if end.is_listed() {
            self.listed.insert(number);
        }
        self.ends.insert(number, end);
    }

    /// Each record has a lane, and every other one a deadline.
    fn new_url(&self, number: usize) -> NewUrl {
        let lane = Lane::ALL[number % 2];
        let deadline = (number < 3).then(|| self.now.plus(HOUR));
        NewUrl { deadline, ..NewUrl::seed(Stage::url(number), lane) }
    }

    /// The message that a URL's record waits for.
    fn message(&self, number: usize) -> Message {
        let wake = match &self.urls[&number] {
            // Of every other one a copy comes, which says nothing of that.
            UrlState::Pending(Record { state: State::Parked { until, .. }, .. })
                if number.is_multiple_of(2) =>
            {
                Some(*until)
            }
            _ => None,
        };
        Message { wake, ..self.new_url(number).message(&self.crawl) }
    }

    fn claim(&self, number: usize) -> Claim {
        Claim { crawl: self.crawl.clone(), url: Stage::url(number) }
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Admit(urls) => {
                let new: Vec<NewUrl> = urls.iter().map(|&number| self.new_url(number)).collect();
                let told = self.frontier.admit(&self.lease, &new).await;
                if self.status.is_over() {
                    assert_eq!(told.unwrap_err().kind, ErrorKind::Stale);
                    return;
                }
                let deadlines: Vec<_> = (0..URLS).map(|number| self.new_url(number).deadline).collect();
                let rule = |url: &mut UrlState, number: usize, context: &Context| {
                    url.admit(Lane::ALL[number % 2], deadlines[number], true, context) == Taken::New
                };
                assert_eq!(told.unwrap(), self.rule(urls, rule));
            }
            Step::Confirm(urls) => {
                let all: Vec<CanonicalUrl> = urls.iter().map(|&number| Stage::url(number)).collect();
                self.frontier.confirm(&self.crawl, &all).await.unwrap();
                self.rule(urls, |url, _, _| url.confirm());
            }
            Step::Hear(who, urls) => {
                let (who, messages) = (worker(*who), self.messages(urls));
                let told = self.frontier.hear(&who, &messages).await.unwrap();
                let all = self.messages(&(0..URLS).collect::<Vec<_>>());
                assert_eq!(
                    told,
                    self.rule(urls, |url, number, context| url.hear(&who, &all[number], context))
                );
            }
            Step::Keep(who, urls) => {
                let (who, messages) = (worker(*who), self.messages(urls));
                let told = self.frontier.keep(&who, &messages).await.unwrap();
                let all = self.messages(&(0..URLS).collect::<Vec<_>>());
                assert_eq!(
                    told,
                    self.rule(urls, |url, number, context| url.keep(&who, &all[number], context))
                );
            }
            Step::Start(who, urls) => {
                let (who, claims) = (worker(*who), self.claims(urls));
                let told: Vec<Start> = self.frontier.start(&who, &claims).await.unwrap();
                assert_eq!(told, self.rule(urls, |url, _, context| url.start(&who, context)));
            }
            Step::Park(who, urls, ms, failed) => {
                let (who, until) = (worker(*who), self.now.plus(Duration::from_millis(*ms)));
                let parking = |claim| Parking { claim, until, failed: *failed };
                let parkings: Vec<Parking> = self.claims(urls).into_iter().map(parking).collect();
                let told = self.frontier.park(&who, &parkings).await.unwrap();
                assert_eq!(told, self.rule(urls, |url, _, context| url.park(&who, until, *failed, context)));
            }
            Step::Release(who, urls) => {
                let (who, claims) = (worker(*who), self.claims(urls));
                self.frontier.release(&who, &claims).await.unwrap();
                self.rule(urls, |url, _, context| url.release(&who, context));
            }
            Step::Finish(who, urls, terminal, why) => self.finish(&worker(*who), urls, *terminal, *why).await,
            Step::Sweep(ago) => self.sweep(ago).await,
            Step::Replay(number) => self.replay(*number).await,
            Step::Pause => {
                if self.frontier.pause(&self.crawl).await.is_ok() && self.status == CrawlState::Running {
                    (self.status, self.paused) = (CrawlState::Paused, self.now);
                }
            }
            Step::Resume => {
                if self.frontier.resume(&self.crawl).await.is_ok() && self.status == CrawlState::Paused {
                    self.status = CrawlState::Running;
                    let pause = self.now.since(self.paused);
                    let moved = |url: &mut UrlState, _, _: &Context| {
                        if let UrlState::Pending(record) = url {
                            record.deadline = record.deadline.map(|deadline| deadline.plus(pause));
                        }
                    };
                    self.rule(&(0..URLS).collect::<Vec<_>>(), moved);
                }
            }
            Step::Cancel => {
                self.frontier.command(&self.crawl, "cancel").await.unwrap();
                self.status = CrawlState::Cancelled;
            }
            Step::Clear => self.clear().await,
            Step::Pass(ms) => {
                self.now = self.now.plus(Duration::from_millis(*ms));
                set_clock(&self.link, self.now).await;
            }
        }
    }

    fn messages(&self, urls: &[usize]) -> Vec<Message> {
        urls.iter().map(|&number| self.message(number)).collect()
    }

    fn claims(&self, urls: &[usize]) -> Vec<Claim> {
        urls.iter().map(|&number| self.claim(number)).collect()
    }

    async fn finish(&mut self, who: &WorkerId, urls: &[usize], terminal: Terminal, why: Option<Skip>) {
        let why = why.map(Skip::as_str);
        let finish = |claim| Finish { why, note: Some(note(terminal, why)), ..Finish::new(claim, terminal) };
        let finishes: Vec<Finish> = self.claims(urls).into_iter().map(finish).collect();
        let told = self.frontier.finish(who, &finishes).await.unwrap();
        for (&number, told) in urls.iter().zip(told) {
            let finished = self.rule(&[number], |url, _, context| url.finish(who, terminal, why, context))[0];
            assert_eq!(told, finished != Finished::NotHeld);
            if let Finished::Now(end) = finished {
                self.note_end(number, end);
            }
        }
    }

    async fn sweep(&mut self, ago: &[(u64, u64); 3]) {
        let mut tides = Tides::default();
        let lines = [Line::Due, Line::Priority, Line::Bulk];
        for (line, (probe, gap)) in lines.into_iter().zip(ago) {
            tides.tide[line as usize] = self.now.0 - probe;
            tides.gap[line as usize] = self.now.0 - gap;
        }
        let passed = |line: Line| {
            let at = lines.iter().position(|&known| known == line).unwrap();
            Passed { probe: UnixMs(self.now.0 - ago[at].0), gap: UnixMs(self.now.0 - ago[at].1) }
        };
        let round = Round {
            looked: std::time::Instant::now(),
            clearing: VecDeque::new(),
            left: VecDeque::new(),
            cursor: "0".to_owned(),
            records: URLS as u64,
            tides,
        };
        let mut swept = Sweep::default();
        let next = self.frontier.search(&self.crawl, &round, &mut swept).await.unwrap();
        assert_eq!(next, "0", "so few records are one step");
        let lost: BTreeSet<String> = swept.lost.iter().map(|message| message.url.to_string()).collect();
        let context = self.context();
        let is_lost = |(number, url): (&usize, &mut UrlState)| {
            url.sweep(passed, &context).then(|| Stage::url(*number).to_string())
        };
        let expected: BTreeSet<String> = self.urls.iter_mut().filter_map(is_lost).collect();
        assert_eq!((lost, swept.lost.len()), (expected.clone(), expected.len()));
    }

    async fn replay(&mut self, number: usize) {
        let told = self.frontier.replay(&self.crawl, &self.crawl, &[Stage::url(number)]).await;
        if self.status.is_over() {
            assert_eq!(told.unwrap_err().kind, ErrorKind::Stale);
            return;
        }
        assert_eq!(told.unwrap().len(), usize::from(self.listed.contains(&number)));
        if self.listed.remove(&number) {
            let end = self.ends.remove(&number).unwrap();
            *self.counts.of(end.terminal) -= 1;
            let record = Record::new(State::New { since: self.now }, Lane::Bulk, None);
            self.urls.insert(number, UrlState::Pending(record));
        }
    }

    async fn clear(&mut self) {
        let end = self.context().end_of_rest();
        self.frontier.clear_step(&self.crawl).await.unwrap();
        let Some(end) = end else { return };
        for number in 0..URLS {
            if matches!(self.urls[&number], UrlState::Pending(_)) {
                self.urls.insert(number, UrlState::Ended);
                self.note_end(number, end);
            }
        }
    }

    /// Compares all that is stored with what must be.
    async fn agree(&self) {
        let idle: Option<u64> = self.ask("HGET", |keys| keys.crawl, &["idle"]).await;
        let stored: BTreeMap<String, String> = self.ask("HGETALL", |keys| keys.pending, &[]).await;
        let stored = stored.into_iter().map(|(url, text)| (url, Row::read(&text, idle.unwrap_or_default())));
        let records = || self.records().map(|(number, record)| (Stage::url(number).to_string(), record));
        let expected: BTreeMap<String, Row> = records().map(|(url, record)| (url, Row::of(record))).collect();
        assert_eq!(stored.collect::<BTreeMap<_, _>>(), expected);

        for (url, record) in records() {
            let member = format!("c {url}");
            let score: Option<u64> = self.ask("ZSCORE", |keys| keys.outbox, &[&member]).await;
            match record.state {
                State::New { since } => assert_eq!(score, Some(since.0)),
                State::Parked { unconfirmed, .. } => assert_eq!(score, unconfirmed.map(|since| since.0)),
                // What a worker heard before it was confirmed may still be listed.
                State::Queued { .. } | State::Held { .. } => {}
            }
        }
        let begun: BTreeSet<String> = self.ask("SMEMBERS", |keys| keys.begun, &[]).await;
        let expected = records().filter(|(_, record)| record.has_begun && self.max_pages.is_some());
        assert_eq!(begun, expected.map(|(url, _)| url).collect());

        let listed: BTreeSet<String> = self.ask("HKEYS", |keys| keys.failed, &[]).await;
        assert_eq!(listed, self.listed.iter().map(|&number| Stage::url(number).to_string()).collect());
        let books = self.frontier.books(&self.crawl.id).await.unwrap().unwrap();
        assert_eq!((books.counts, books.status), (self.counts, self.status));
    }

    /// Ends the crawl, and looks what is still seen.
    async fn end(mut self) {
        self.take(&Step::Cancel).await;
        self.take(&Step::Clear).await;
        self.frontier.cancel(&self.crawl).await.unwrap();
        for number in 0..URLS {
            let expected = self.ends.get(&number).is_some_and(|end| end.stays_seen);
            let told = self.frontier.has_seen(&self.crawl, &Stage::url(number)).await.unwrap();
            assert_eq!(told, expected, "{number}: {:?}", self.ends.get(&number));
        }
    }
}

async fn set_clock(link: &Link, now: UnixMs) {
    let () = redis::cmd("SET").arg("now").arg(now.0 * 1000).query_async(&mut link.clone()).await.unwrap();
}

fn worker(number: usize) -> WorkerId {
    format!("worker-{number}").parse().unwrap()
}

fn note(terminal: Terminal, why: Option<&'static str>) -> Note {
    let reason = match (terminal, why) {
        (Terminal::Expired, _) => Reason::Expired,
        (_, Some("blocked")) => Reason::Blocked,
        _ => Reason::Final,
    };
    let (error, failed_at) = (String::new(), UnixMs(0));
    let cause = Cause { reason, class: None, status: None, error, attempts: 1, worker: None, failed_at };
    Note { cause, lane: Lane::Bulk, depth: 0, referrer: None }
}

/// A record, as its text says.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    state: char,
    since: u64,
    deadline: Option<u64>,
    lane: Lane,
    holder: Option<String>,
    starts: u32,
    attempts: u32,
}

impl Row {
    fn read(text: &str, idle: u64) -> Self {
        let mut parts = text.split(' ');
        let head = parts.next().unwrap();
        let (state, head) = head.split_at(1);
        let (since, left) = head.split_at(head.find(['+', '-']).unwrap_or(head.len()));
        let (since, left): (u64, Option<i64>) = (since.parse().unwrap(), left.parse().ok());
        let lane =
            if parts.next().is_some_and(|part| part.starts_with('p')) { Lane::Priority } else { Lane::Bulk };
        let mut parts = parts.skip(1);
        let holder = parts.next().filter(|holder| *holder != "-").map(str::to_owned);
        let mut number = || parts.next().map_or(0, |number| number.parse().unwrap());
        Self {
            state: state.parse().unwrap(),
            since,
            deadline: left.map(|left| since.saturating_add_signed(left) + idle),
            lane,
            holder,
            starts: number(),
            attempts: number(),
        }
    }

    fn of(record: &Record) -> Self {
        let (state, since, holder) = match &record.state {
            State::New { since } => ('n', since, None),
            State::Queued { since } => ('q', since, None),
            State::Parked { until, .. } => ('p', until, None),
            State::Held { by, since, has_started } => (if *has_started { 'f' } else { 'h' }, since, Some(by)),
        };
        Self {
            state,
            since: since.0,
            deadline: record.deadline.map(|deadline| deadline.0),
            lane: record.lane,
            holder: holder.map(WorkerId::to_string),
            starts: record.starts,
            attempts: record.attempts,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_script_leaves_what_the_rules_say(
        max_pages in select(&[None, Some(1), Some(2), Some(3)][..]),
        is_recovering in any::<bool>(),
        steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let settings = Redis { url: servers::own_database().await, ..Redis::default() };
            let link = connect(&settings).await.unwrap();
            let mut pair = Pair::new(link, max_pages, is_recovering).await;
            for step in &steps {
                pair.take(step).await;
                pair.agree().await;
            }
            pair.end().await;
        });
    }
}
