//! Records of a format that only newer programs read: this program leaves them unchanged everywhere.

use trawl_common::frontier::StartReply;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{Finish, Stats};
use trawl_engine::{Linked, Linking, Parking};

use super::*;

const PENDING: &str = "{crawled_urls}:pending:c";
const OUTBOX: &str = "{crawled_urls}:outbox";
/// A record that differs from the current format in everything but its leading version.
const NEWER: &str = "v4 {\"state\":\"new\"}";

/// A program that reads the next format.
const OF_NEWER: Clock = Clock(
    "local FORMAT = 4
     local function now_us()
       local time = redis.call('TIME')
       return time[1] * 1000000 + time[2] + (redis.call('GET', 'later') or 0)
     end\n",
);

impl Fixture {
    /// Rewrites the record of page `number` as a newer program would.
    async fn renew(&self, number: usize) {
        let () = self.ask(redis::cmd("HSET").arg(PENDING).arg(Self::url(number).as_str()).arg(NEWER)).await;
    }

    /// Asserts that the record of page `number` is unchanged, and that nothing is reported about it.
    async fn assert_left_alone(&self, number: usize) {
        let kept: String = self.ask(redis::cmd("HGET").arg(PENDING).arg(Self::url(number).as_str())).await;
        assert_eq!(kept, NEWER);
        let stats = self.frontier.crawl_stats(&self.crawl.id).await.unwrap().unwrap();
        assert_eq!((stats.counts.failed, stats.status), (0, CrawlState::Running));
        let corrupt: u64 = self.ask(redis::cmd("EXISTS").arg("{crawled_urls}:corrupt:c")).await;
        assert_eq!(corrupt, 0);
    }
}

/// Returns a crawl of two pages, both held, of which a newer program took the first.
async fn renewed() -> (Fixture, Lease) {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..2).await;
    for number in 0..2 {
        assert_eq!(fixture.claim(&fixture.worker, number).await, TAKE);
    }
    fixture.renew(0).await;
    (fixture, lease)
}

#[tokio::test]
async fn a_message_of_such_a_record_is_for_newer_workers() {
    let (fixture, _lease) = renewed().await;
    let messages = [0, 1].map(|number| fixture.message(number));
    let replies = fixture.frontier.claim(&fixture.worker, &messages).await.unwrap();
    assert_eq!(replies, [ClaimReply::Newer, TAKE]);
    let extended = fixture.frontier.extend(&fixture.worker, &messages).await.unwrap();
    assert_eq!(extended, [false, true]);
    fixture.assert_left_alone(0).await;
}

#[tokio::test]
async fn whoever_held_it_before_holds_it_no_more() {
    let (fixture, _lease) = renewed().await;
    let claims = [0, 1].map(|number| fixture.claim_on(number));
    let started = fixture.frontier.start(&fixture.worker, &claims).await.unwrap();
    assert_eq!(started, [StartReply::Lost, StartReply::Go]);
    let links = vec![NewWork::seed(Fixture::url(9), Lane::Bulk)];
    let linking = Linking { page: fixture.claim_on(0), links };
    assert_eq!(fixture.frontier.admit_links(&fixture.worker, &[linking]).await.unwrap(), [Linked::NotHeld]);
    let until = fixture.frontier.now().await.unwrap();
    let parking = Parking { claim: fixture.claim_on(0), until, failed: true };
    assert_eq!(fixture.frontier.park(&fixture.worker, &[parking]).await.unwrap(), [false]);
    fixture.frontier.release(&fixture.worker, &claims[..1]).await.unwrap();
    let finishes = claims.map(|claim| Finish::new(claim, Terminal::Done));
    let ended = fixture.frontier.finish(&fixture.worker, &finishes).await.unwrap();
    assert_eq!(ended, [false, true], "its message is not to be acknowledged");
    fixture.assert_left_alone(0).await;
}

#[tokio::test]
async fn a_sweep_passes_it_by_and_the_crawl_waits_for_newer_workers() {
    let (fixture, lease) = renewed().await;
    let finish = Finish::new(fixture.claim_on(1), Terminal::Done);
    fixture.frontier.finish(&fixture.worker, &[finish]).await.unwrap();
    let member = format!("c {}", Fixture::url(0));
    let () = fixture.ask(redis::cmd("ZADD").arg(OUTBOX).arg(1).arg(&member)).await;
    fixture.frontier.close(lease, None).await.unwrap();
    fixture.set_clock(24 * HOUR + 10 * LOST_AFTER).await;
    for _ in 0..2 {
        assert_eq!(fixture.round().await.lost, []);
    }
    fixture.assert_left_alone(0).await;
    let listed: Option<f64> = fixture.ask(redis::cmd("ZSCORE").arg(OUTBOX).arg(member)).await;
    assert!(listed.is_some(), "whoever sweeps next sends it");
}

/// Only the newer program finds its lost records.
#[tokio::test]
async fn the_program_of_the_newest_format_sweeps() {
    let (fixture, _lease) = renewed().await;
    let newer = RedisRecords::with_clock(fixture.link.clone(), OF_NEWER, LOST_AFTER, Dedup::Plain);
    fixture.frontier.sweep(&fixture.worker).await.unwrap();
    let sweeper = async || -> String { fixture.ask(redis::cmd("GET").arg("sweeper")).await };
    assert_eq!(sweeper().await, "worker v3");
    newer.sweep(&fixture.other).await.unwrap();
    assert_eq!(sweeper().await, "other v4");
    fixture.frontier.sweep(&fixture.worker).await.unwrap();
    assert_eq!(sweeper().await, "other v4", "the older one steps back");
}
