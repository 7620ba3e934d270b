//! The scripts beside the rules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;

use futures::future::join_all;
use trawl_common::frontier::crawl::{CrawlState, HostStats};
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::outcome::Reason;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::{Key, Recrawl, StartReply, State, Taken, UrlState, Watermark, Work};
use trawl_common::ports::{Control, ErrorKind, Finish, Stats};
use trawl_common::request::NewRequest;
use trawl_engine::{Linked, Linking, Parking, Past};

use super::row::Row;
use super::rules::{Look, Rules};
use super::*;
use crate::redis::Packing;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::sweep_position::{SweepPosition, Watermarks};

/// A crawl in Redis, and what the rules say of it.
pub(super) struct Pair {
    link: Link,
    frontier: RedisRecords,
    lease: Option<Lease>,
    crawl: CrawlRef,
    terms: Terms,
    rules: Rules,
}

impl Pair {
    pub(super) async fn new(link: Link, setup: &Setup) -> Self {
        let plain = RedisRecords::with_clock(link.clone(), SET, LOST_AFTER, Dedup::Plain);
        set_clock(&link, BEGINNING).await;
        crawl_earlier(&plain).await;
        let frontier = RedisRecords::with_clock(link.clone(), SET, LOST_AFTER, setup.dedup).with_again(AGAIN);
        let rules = Rules::new(setup);
        let limit = |limit: Option<u64>| limit.and_then(NonZeroU64::new);
        let terms = Terms {
            recrawl: if setup.kind == Kind::Recrawl { Recrawl::Always } else { Recrawl::Never },
            max_pages: limit(setup.max_pages),
            max_per_host: limit(setup.max_per_host),
            file: None,
            replays: None,
        };
        let is_adhoc = setup.kind == Kind::Adhoc;
        let crawl = if is_adhoc { CrawlRef::adhoc() } else { crawl("c") };
        let mut pair = Self { link, frontier, lease: None, crawl, terms, rules };
        pair.open().await;
        if is_adhoc {
            pair.frontier.restore_crawl(&pair.crawl).await.unwrap();
            let again = AGAIN.as_millis().to_string();
            let () = pair.ask("HSET", |keys| keys.crawl, &["again", &again]).await;
        }
        if setup.is_recovering {
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

    /// Each record has a lane, and every other one a deadline.
    fn new_work(&self, number: usize) -> NewWork {
        let lane = Lane::ALL[number % 2];
        let deadline = (number < URLS / 2).then(|| self.rules.now.plus(HOUR));
        NewWork { deadline, ..NewWork::new(work(number), lane) }
    }

    /// The message that a URL's record waits for.
    fn message(&self, number: usize, sender: Sender) -> Message {
        let wake = match self.rules.records.get(&number).map(|record| &record.state) {
            // For every other one a copy comes, which has no wake.
            Some(State::Parked { until, .. }) if number.is_multiple_of(2) => Some(*until),
            _ => None,
        };
        let (depth, is_ours) = (u16::from(sender == Sender::Link), sender != Sender::Stranger);
        Message { wake, depth, is_ours, ..self.new_work(number).message(&self.crawl) }
    }

    fn messages(&self, urls: &[usize], sender: Sender) -> Vec<Message> {
        urls.iter().map(|&number| self.message(number, sender)).collect()
    }

    fn claim_on(&self, number: usize) -> Claim {
        Claim { crawl: self.crawl.clone(), key: work(number).key() }
    }

    fn claims(&self, urls: &[usize]) -> Vec<Claim> {
        urls.iter().map(|&number| self.claim_on(number)).collect()
    }

    pub(super) async fn take(&mut self, step: &Step) {
        match step {
            Step::Open => self.open().await,
            Step::Close => self.close().await,
            Step::Admit(urls) => self.admit(urls).await,
            Step::Follow(who, page, links) => self.follow(&worker(*who), *page, links).await,
            Step::Confirm(urls) => {
                let messages = self.messages(urls, Sender::Ours);
                self.frontier.confirm(&messages).await.unwrap();
                for (message, number) in messages.iter().zip(urls) {
                    self.rules.apply_all(&[*number], |url, _| url.confirm(message.wake));
                }
            }
            Step::Claim(who, urls, sender) => {
                let (who, messages) = (worker(*who), self.messages(urls, *sender));
                let reply = self.frontier.claim(&who, &messages).await.unwrap();
                let repeats = urls.iter().filter(|&&number| self.rules.is_repeat(number, *sender)).count();
                self.rules.repeats += repeats as u64;
                let claim = |(&number, message): (&usize, &Message)| {
                    self.rules.receive(number, *sender, |url, context| url.claim(&who, message, context))
                };
                assert_eq!(reply, urls.iter().zip(&messages).map(claim).collect::<Vec<_>>());
            }
            Step::Extend(who, urls, sender) => {
                let (who, messages) = (worker(*who), self.messages(urls, *sender));
                let reply = self.frontier.extend(&who, &messages).await.unwrap();
                let extend = |(&number, message): (&usize, &Message)| {
                    self.rules.receive(number, *sender, |url, context| url.extend(&who, message, context))
                };
                assert_eq!(reply, urls.iter().zip(&messages).map(extend).collect::<Vec<_>>());
            }
            Step::Start(who, urls) => {
                let (who, claims) = (worker(*who), self.claims(urls));
                let reply: Vec<StartReply> = self.frontier.start(&who, &claims).await.unwrap();
                assert_eq!(reply, self.rules.apply_all(urls, |url, context| url.start(&who, context)));
            }
            Step::Park(who, urls, ms, failed) => {
                let (who, until) = (worker(*who), self.rules.now.plus(Duration::from_millis(*ms)));
                let parking = |claim| Parking { claim, until, failed: *failed };
                let parkings: Vec<Parking> = self.claims(urls).into_iter().map(parking).collect();
                let reply = self.frontier.park(&who, &parkings).await.unwrap();
                let park = |url: &mut UrlState, context: &_| url.park(&who, until, *failed, context);
                assert_eq!(reply, self.rules.apply_all(urls, park));
            }
            Step::Release(who, urls) => {
                let (who, claims) = (worker(*who), self.claims(urls));
                self.frontier.release(&who, &claims).await.unwrap();
                self.rules.apply_all(urls, |url, context| url.release(&who, context));
            }
            Step::Finish(who, urls, ending) => self.finish(&worker(*who), urls, *ending).await,
            Step::Sweep(ago) => self.sweep(ago).await,
            Step::Replay(number) => self.replay(*number).await,
            Step::Pause => {
                let is_running = self.rules.status == CrawlState::Running;
                if self.frontier.pause(&self.crawl).await.is_ok() && is_running {
                    (self.rules.status, self.rules.paused) = (CrawlState::Paused, self.rules.now);
                }
            }
            Step::Resume => {
                let is_paused = self.rules.status == CrawlState::Paused;
                if self.frontier.resume(&self.crawl).await.is_ok() && is_paused {
                    self.rules.resume();
                }
            }
            Step::Cancel => {
                if self.frontier.order(&self.crawl, CrawlState::Cancelled).await.is_ok() {
                    self.rules.status = CrawlState::Cancelled;
                }
            }
            Step::Clear => {
                self.frontier.clear_step(&self.crawl).await.unwrap();
                self.rules.clear();
            }
            Step::Pack => {
                let left = Packing::new(self.link.clone(), &self.crawl.spider).step().await.unwrap();
                assert_eq!(left, 0, "so few URLs are one step");
            }
            Step::Pass(ms) => {
                self.rules.now = self.rules.now.plus(Duration::from_millis(*ms));
                set_clock(&self.link, self.rules.now).await;
            }
        }
    }

    /// Opens the crawl, unless it is the one that is always open.
    async fn open(&mut self) {
        if self.crawl.is_adhoc() {
            return;
        }
        let opened =
            self.frontier.open(&self.crawl, self.terms, "producer", 1000 * HOUR, Past::Possible).await;
        match opened {
            Err(error) => assert_eq!((error.kind, self.rules.status.is_over()), (ErrorKind::Stale, true)),
            Ok(lease) => {
                assert!(!self.rules.status.is_over());
                (self.lease, self.rules.is_closed) = (Some(lease), false);
            }
        }
    }

    async fn close(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        // A cancelled crawl has no sources to end.
        let closed = self.frontier.close(lease, None).await;
        assert!(closed.is_ok() || self.rules.status.is_over());
        self.rules.is_closed = true;
        self.rules.end_if_done();
    }

    async fn admit(&mut self, urls: &[usize]) {
        let Some(lease) = &self.lease else { return };
        let new: Vec<NewWork> = urls.iter().map(|&number| self.new_work(number)).collect();
        let reply = self.frontier.admit(lease, &new).await;
        if self.rules.status.is_over() {
            assert_eq!(reply.unwrap_err().kind, ErrorKind::Stale);
            return;
        }
        let admit = |(&number, new): (&usize, &NewWork)| {
            let taken = self
                .rules
                .apply(number, Look::Named, |url, context| url.admit(new.lane, new.deadline, true, context));
            taken == Taken::New
        };
        assert_eq!(reply.unwrap(), urls.iter().zip(&new).map(admit).collect::<Vec<_>>());
    }

    async fn follow(&mut self, who: &WorkerId, page: usize, links: &[usize]) {
        let referrer = Some(work(page).key());
        let new = |&number: &usize| NewWork { depth: 1, referrer: referrer.clone(), ..self.new_work(number) };
        let linking = Linking { page: self.claim_on(page), links: links.iter().map(new).collect() };
        let reply = self.frontier.admit_links(who, std::slice::from_ref(&linking)).await.unwrap();
        let links: Vec<_> =
            links.iter().zip(&linking.links).map(|(&number, new)| (number, new.lane, new.deadline)).collect();
        let expected = self.rules.follow(who, page, &links).map_or(Linked::NotHeld, Linked::Taken);
        assert_eq!(reply, [expected]);
    }

    async fn finish(&mut self, who: &WorkerId, urls: &[usize], ending: Ending) {
        let why = ending.why.map(Skip::as_str);
        let finish = |claim| Finish {
            why,
            note: Some(note(ending.terminal, why)),
            landed: ending.landed.map(Fixture::url),
            ..Finish::new(claim, ending.terminal)
        };
        let finishes: Vec<Finish> = self.claims(urls).into_iter().map(finish).collect();
        let reply = self.frontier.finish(who, &finishes).await.unwrap();
        assert_eq!(reply, self.rules.finish(who, urls, ending));
    }

    async fn sweep(&mut self, ago: &[(u64, u64); 3]) {
        let now = self.rules.now;
        let mut watermarks = Watermarks::default();
        let sources = [SourceQueue::Due, SourceQueue::Priority, SourceQueue::Bulk];
        for (source, (delivered, lost_before)) in sources.into_iter().zip(ago) {
            watermarks.delivered[source as usize] = now.0 - delivered;
            watermarks.lost_before[source as usize] = now.0 - lost_before;
        }
        let watermark = |source: SourceQueue| {
            let at = sources.iter().position(|&known| known == source).unwrap();
            let (delivered, lost_before) = ago[at];
            Watermark { delivered: UnixMs(now.0 - delivered), lost_before: UnixMs(now.0 - lost_before) }
        };
        let round = SweepPosition {
            looked: std::time::Instant::now(),
            clearing: VecDeque::new(),
            left: VecDeque::new(),
            cursor: "0".to_owned(),
            records: URLS as u64,
            watermarks,
        };
        let mut swept = Sweep::default();
        let next = self.frontier.search(&self.crawl, &round, &mut swept).await.unwrap();
        assert_eq!(next, "0", "so few records are one step");
        let lost: BTreeSet<Key> = swept.lost.iter().map(Message::key).collect();
        let expected: BTreeSet<Key> =
            self.rules.sweep(watermark).into_iter().map(|number| work(number).key()).collect();
        assert_eq!((lost, swept.lost.len()), (expected.clone(), expected.len()));
    }

    async fn replay(&mut self, number: usize) {
        let reply = self.frontier.replay(&self.crawl, &self.crawl, &[work(number).key()]).await;
        if self.rules.status.is_over() {
            assert_eq!(reply.unwrap_err().kind, ErrorKind::Stale);
            return;
        }
        assert_eq!(reply.unwrap().len(), usize::from(self.rules.replay(number)));
    }

    /// Compares all that is stored with what must be.
    pub(super) async fn agree(&self) {
        let idle: Option<u64> = self.ask("HGET", |keys| keys.crawl, &["idle"]).await;
        let stored: BTreeMap<String, String> = self.ask("HGETALL", |keys| keys.pending, &[]).await;
        let stored = stored.into_iter().map(|(url, text)| (url, Row::read(&text, idle.unwrap_or_default())));
        let records = || self.rules.records.iter().map(|(&number, record)| (text(number), record));
        let expected: BTreeMap<String, Row> =
            records().map(|(url, record)| (url, Row::new(record))).collect();
        assert_eq!(stored.collect::<BTreeMap<_, _>>(), expected);

        for (url, record) in records() {
            let member = format!("{} {url}", self.crawl.id);
            let score: Option<u64> = self.ask("ZSCORE", |keys| keys.outbox, &[&member]).await;
            match record.state {
                State::New { since } => assert_eq!(score, Some(since.0)),
                State::Parked { unconfirmed, in_pause: false, .. } => {
                    assert_eq!(score, unconfirmed.map(|since| since.0));
                }
                // Records that a worker claimed before they were confirmed may still be listed.
                State::Queued { .. } | State::Held { .. } | State::Parked { in_pause: true, .. } => {}
            }
        }
        let begun: BTreeSet<String> = self.ask("SMEMBERS", |keys| keys.begun, &[]).await;
        let expected = records().filter(|(_, record)| record.has_begun && self.terms.max_pages.is_some());
        assert_eq!(begun, expected.map(|(url, _)| url).collect());
        self.agree_on_books().await;
        self.agree_on_seen().await;
    }

    async fn agree_on_books(&self) {
        let Rules { listed, counts, status, repeats, .. } = &self.rules;
        let stored: BTreeSet<String> = self.ask("HKEYS", |keys| keys.failed, &[]).await;
        assert_eq!(stored, listed.keys().map(|&number| text(number)).collect());
        let stats = self.frontier.crawl_stats(&self.crawl.id).await.unwrap().unwrap();
        assert_eq!((&stats.counts, &stats.status), (counts, status));
        assert_eq!(stats.reasons.get("dropped:repeat").copied().unwrap_or_default(), *repeats);
        for HostStats { host, counts, .. } in self.frontier.read_hosts(&self.crawl, 10).await.unwrap() {
            assert_eq!((host.as_str(), counts), (HOST, stats.counts));
        }
    }

    /// Compares the URLs that the crawl takes for seen, and those that a later one will.
    async fn agree_on_seen(&self) {
        let later = crawl("later");
        let ask = async |number: usize| {
            let url = Fixture::url(number);
            let by_crawl = self.frontier.has_seen(&self.crawl, &url).await.unwrap();
            (number, by_crawl, self.frontier.has_seen(&later, &url).await.unwrap())
        };
        for (number, by_crawl, by_spider) in
            join_all((0..URLS).filter(|&number| !is_request(number)).map(ask)).await
        {
            let expected = (self.rules.has_seen(number), self.rules.seen.contains(&number));
            assert_eq!((by_crawl, by_spider), expected, "{number}");
        }
    }
}

/// An earlier crawl of the spider fetches some of the URLs.
async fn crawl_earlier(frontier: &RedisRecords) {
    let crawl = crawl("earlier");
    let lease = frontier.open(&crawl, Terms::default(), "producer", HOUR, Past::Possible).await.unwrap();
    let new: Vec<NewWork> = (0..SEEN).map(|number| NewWork::seed(Fixture::url(number), Lane::Bulk)).collect();
    frontier.admit(&lease, &new).await.unwrap();
    let messages: Vec<Message> = new.iter().map(|url| url.message(&crawl)).collect();
    frontier.claim(&worker(0), &messages).await.unwrap();
    let claim = |url: NewWork| Claim { crawl: crawl.clone(), key: url.work.key() };
    let finishes: Vec<Finish> = new.into_iter().map(|url| Finish::new(claim(url), Terminal::Done)).collect();
    assert_eq!(frontier.finish(&worker(0), &finishes).await.unwrap(), [true; SEEN]);
    frontier.close(lease, None).await.unwrap();
}

fn crawl(id: &str) -> CrawlRef {
    CrawlRef { id: id.parse().unwrap(), spider: SpiderName::default() }
}

async fn set_clock(link: &Link, now: UnixMs) {
    let () = redis::cmd("SET").arg("now").arg(now.0 * 1000).query_async(&mut link.clone()).await.unwrap();
}

fn worker(number: usize) -> WorkerId {
    format!("worker-{number}").parse().unwrap()
}

fn text(number: usize) -> String {
    work(number).to_string()
}

/// Returns the work of record `number`: a request behaves like a URL.
fn work(number: usize) -> Work {
    let url = Fixture::url(number);
    if !is_request(number) {
        return url.into();
    }
    let new = NewRequest { data: Some(number.into()), ..NewRequest::get("") };
    Work::of_request(url, new).unwrap()
}

fn note(terminal: Terminal, why: Option<&'static str>) -> DeadLetterEntry {
    let reason = match (terminal, why) {
        (Terminal::Expired, _) => Reason::Expired,
        (_, Some("blocked")) => Reason::Blocked,
        _ => Reason::Final,
    };
    DeadLetterEntry::new(Cause { attempts: 1, ..Cause::new(reason, "", UnixMs(0)) })
}
