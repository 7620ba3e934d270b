//! Tests that drive the scripts directly: on a real Redis, with a clock that tests set.

mod clock;
mod corrupt;
mod foreign;
mod host_news;
mod newer;
mod news;
mod pausing;
mod requests;
mod schedules;
mod schema;
mod sweep;
mod transitions;
mod urgent;

use std::time::Duration;

use redis::FromRedisValue;
use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::politeness::gcra::Slot;
use trawl_common::ports::{Claim, HostSlotRequest, Hosts, NewWork, Terms};
use trawl_common::settings::{Dedup, Redis};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{
    Admission, Claims, DeadLetters, Heartbeats, Lease, Outbox, Past, Probe, ProbeTimes, Recovery,
    Settlements, Sweep,
};
use trawl_testkit::servers;

use crate::redis::connect;
use crate::redis::scripts::Clock;
use crate::redis::{Link, RedisHosts, RedisRecords};

/// The server's clock, plus the value of the key `later`, in us.
const LATER: Clock = Clock(
    "local function now_us()
       local time = redis.call('TIME')
       return time[1] * 1000000 + time[2] + (redis.call('GET', 'later') or 0)
     end\n",
);

/// The clock is what the key `now` says, in us.
const SET: Clock = Clock("local function now_us() return tonumber(redis.call('GET', 'now')) end\n");

const LOST_AFTER: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A frontier and host schedules on a database of their own, and a crawl.
struct Fixture {
    link: Link,
    frontier: RedisRecords,
    hosts: RedisHosts,
    crawl: CrawlRef,
    worker: WorkerId,
    other: WorkerId,
}

impl Fixture {
    async fn new() -> Self {
        let settings = Redis { url: servers::own_database().await, ..Redis::default() };
        let link = connect(&settings).await.unwrap();
        let fixture = Self {
            frontier: RedisRecords::with_clock(link.clone(), LATER, LOST_AFTER, Dedup::Plain),
            hosts: RedisHosts::with_clock(link.clone(), 1_000_000, LATER),
            link,
            crawl: CrawlRef { id: "c".parse().unwrap(), spider: SpiderName::default() },
            worker: "worker".parse().unwrap(),
            other: "other".parse().unwrap(),
        };
        // Far enough from the server's clock to be set back.
        fixture.set_clock(24 * HOUR).await;
        fixture
    }

    /// Sets the clock so far ahead of the server's.
    async fn set_clock(&self, ahead: Duration) {
        let () = self.ask(redis::cmd("SET").arg("later").arg(ahead.as_micros() as u64)).await;
    }

    async fn ask<T: FromRedisValue>(&self, command: &redis::Cmd) -> T {
        command.query_async(&mut self.link.clone()).await.unwrap()
    }

    async fn open(&self) -> Lease {
        self.frontier
            .open(&self.crawl, Terms::default(), "producer", 100 * HOUR, Past::Possible)
            .await
            .unwrap()
    }

    fn url(number: usize) -> CanonicalUrl {
        CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap()
    }

    fn claim_on(&self, number: usize) -> Claim {
        Claim { crawl: self.crawl.clone(), key: Self::url(number).into() }
    }

    fn message(&self, number: usize) -> Message {
        Message::seed(Self::url(number), self.crawl.clone(), Lane::Bulk)
    }

    /// Admits and confirms pages.
    async fn send(&self, lease: &Lease, numbers: std::ops::Range<usize>) {
        let new: Vec<NewWork> = numbers.map(|number| NewWork::seed(Self::url(number), Lane::Bulk)).collect();
        let messages: Vec<Message> = new.iter().map(|new| new.message(&lease.crawl)).collect();
        self.frontier.admit(lease, &new).await.unwrap();
        self.frontier.confirm(&messages).await.unwrap();
    }

    async fn claim(&self, worker: &WorkerId, number: usize) -> ClaimReply {
        self.frontier.claim(worker, &[self.message(number)]).await.unwrap().remove(0)
    }

    /// Sends a probe through every line, which comes back.
    async fn probe(&self) {
        let sent = self.frontier.now().await.unwrap();
        let probes =
            SourceQueue::ALL.map(|source| Probe { source, times: ProbeTimes { sent, previous: UnixMs(0) } });
        self.frontier.probes_returned(&probes).await.unwrap();
    }

    /// A whole round of the sweep, by a process that has done none before.
    async fn round(&self) -> Sweep {
        let frontier = RedisRecords::with_clock(self.link.clone(), LATER, LOST_AFTER, Dedup::Plain);
        let mut round = frontier.sweep(&self.worker).await.unwrap();
        while round.rest < LOST_AFTER / 12 {
            let step = frontier.sweep(&self.worker).await.unwrap();
            round.lost.extend(step.lost);
            round.awaiting.extend(step.awaiting);
            round.corrupt.extend(step.corrupt);
            round.news.extend(step.news);
            round.rest = step.rest;
        }
        round
    }

    async fn slot(&self, ask: &HostSlotRequest) -> Slot {
        self.hosts.reserve(std::slice::from_ref(ask)).await.unwrap().remove(0)
    }
}

/// The reply to a claim of a URL that is free.
const TAKE: ClaimReply = ClaimReply::Take { attempts: 0, starts: 0, deadline: None };
