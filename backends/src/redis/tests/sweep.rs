//! Tests of a sweep of many records, and of forgetting crawls.

use std::collections::BTreeSet;

use trawl_common::frontier::Work;
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::ports::{Finish, SourcesRead, Stats};
use trawl_common::settings::Keep;
use trawl_common::time::UnixMs;

use super::*;

/// So short that the sweeper looks at all before each step.
const SHORT: Duration = Duration::from_millis(4);

impl Fixture {
    /// Returns a fixture with enough records for a round of many steps.
    async fn crowded() -> Self {
        let fixture = Self::new().await;
        let lease = fixture.open().await;
        fixture.send(&lease, 0..8_000).await;
        fixture
    }

    fn sweeper(&self) -> RedisRecords {
        RedisRecords::with_clock(self.link.clone(), LATER, SHORT, Dedup::Plain)
    }

    /// Returns the number of steps to the end of the round, at most `most`.
    async fn steps(&self, sweeper: &RedisRecords, most: usize) -> usize {
        for step in 1..=most {
            sweeper.sweep(&self.worker).await.unwrap();
            if sweeper.position.lock().await.is_none() {
                return step;
            }
        }
        most
    }

    /// A crawl of one page that ended as `terminal`, which was announced.
    async fn ended(&self, id: &str, number: usize, terminal: Terminal) {
        let crawl = CrawlRef { id: id.parse().unwrap(), ..self.crawl.clone() };
        let lease =
            self.frontier.open(&crawl, Terms::default(), "producer", HOUR, Past::Possible).await.unwrap();
        self.send(&lease, number..number + 1).await;
        let message = Message { crawl: crawl.clone(), ..self.message(number) };
        self.frontier.claim(&self.worker, &[message]).await.unwrap();
        let claim = Claim { crawl: crawl.clone(), key: Self::url(number).into() };
        let finish = Finish { note: Some(note()), ..Finish::new(claim, terminal) };
        self.frontier.finish(&self.worker, &[finish]).await.unwrap();
        self.frontier.close(lease, None).await.unwrap();
        let news = self.round().await.news;
        assert_eq!(news.iter().filter(|event| event.kind.is_end()).count(), 1);
        for event in &news {
            self.frontier.announced(event).await.unwrap();
        }
    }

    async fn crawls(&self) -> Vec<String> {
        let stats = self.frontier.crawls().await.unwrap();
        stats.into_iter().map(|stats| stats.crawl.to_string()).collect()
    }
}

fn note() -> DeadLetterEntry {
    DeadLetterEntry::new(Cause { attempts: 1, ..Cause::new(Reason::Final, "", UnixMs(0)) })
}

#[tokio::test]
async fn another_sweeper_goes_on_where_the_last_one_stopped() {
    let fixture = Fixture::crowded().await;
    let all = fixture.steps(&fixture.sweeper(), 100).await;
    assert!(all > 6, "{all}");
    let (first, second) = (fixture.sweeper(), fixture.sweeper());
    fixture.steps(&first, all - 2).await;
    let rest = fixture.steps(&second, 100).await;
    assert!(rest <= 4, "{rest} of {all}");
    assert_eq!(fixture.steps(&second, 100).await, all, "the next round begins at the start");
}

#[tokio::test]
async fn probes_are_sent_while_a_round_goes_on() {
    let fixture = Fixture::crowded().await;
    let sweeper = fixture.sweeper();
    assert!(sweeper.sweep(&fixture.worker).await.unwrap().probe.is_some());
    for hour in 25..28 {
        fixture.set_clock(hour * HOUR).await;
        assert!(sweeper.sweep(&fixture.worker).await.unwrap().probe.is_some());
        assert!(sweeper.position.lock().await.is_some(), "the round goes on");
    }
}

#[tokio::test]
async fn a_probe_that_could_not_be_sent_is_not_missed() {
    let fixture = Fixture::new().await;
    let unsent = fixture.round().await.probe.unwrap();
    fixture.set_clock(25 * HOUR).await;
    let sent = fixture.round().await.probe.unwrap();
    assert_eq!(sent.previous, unsent.previous);
    fixture.frontier.probe_sent(sent).await.unwrap();
    fixture.set_clock(26 * HOUR).await;
    assert_eq!(fixture.round().await.probe.unwrap().previous, sent.sent);
}

#[tokio::test]
async fn what_is_lost_is_found_in_a_round_of_many_steps() {
    let fixture = Fixture::crowded().await;
    let lost = 3_999;
    fixture.claim(&fixture.worker, lost).await;
    fixture.set_clock(25 * HOUR).await;
    let found = fixture.round().await.lost;
    let since = found[0].since;
    assert_eq!(found, [Message { since, ..fixture.message(lost) }]);
}

#[tokio::test]
async fn what_was_lost_comes_before_what_waits_for_less_long() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..2).await;
    fixture.claim(&fixture.worker, 1).await;
    fixture.set_clock(25 * HOUR).await;
    fixture.claim(&fixture.worker, 0).await;
    fixture.set_clock(27 * HOUR).await;
    let mut found = fixture.round().await.lost;
    found.sort_by_key(|message| message.since);
    let work: Vec<Work> = found.iter().map(|message| message.work.clone()).collect();
    assert_eq!(work, [Fixture::url(1), Fixture::url(0)]);
    let since: Vec<UnixMs> = found.iter().filter_map(|message| message.since).collect();
    assert!(since[1].since(since[0]) >= HOUR, "{since:?}");
}

#[tokio::test]
async fn crawls_that_are_long_over_are_forgotten_but_for_the_last() {
    let fixture = Fixture::new().await;
    for (number, id) in ["c1", "c2", "c3"].into_iter().enumerate() {
        fixture.ended(id, number, Terminal::Failed).await;
        fixture.set_clock((25 + number as u32) * HOUR).await;
    }
    let keep = Keep { crawls: 1, ..Keep::default() };
    let sweeper =
        RedisRecords::with_clock(fixture.link.clone(), LATER, LOST_AFTER, Dedup::Plain).with_keep(keep);
    sweeper.sweep(&fixture.worker).await.unwrap();
    assert_eq!(fixture.crawls().await, ["c3", "c2", "c1"], "each ended within a day");
    fixture.set_clock(24 * 4 * HOUR).await;
    sweeper.sweep(&fixture.worker).await.unwrap();
    assert_eq!(fixture.crawls().await, ["c3"]);
    let left: BTreeSet<String> = fixture.ask(redis::cmd("KEYS").arg("*:c[12]*")).await;
    assert_eq!(left, BTreeSet::new());
}

#[tokio::test]
async fn dead_letters_of_a_crawl_that_is_over_are_kept_for_a_time() {
    let fixture = Fixture::new().await;
    fixture.ended("c1", 0, Terminal::Failed).await;
    let left: u64 = fixture.ask(redis::cmd("TTL").arg("{crawled_urls}:failed:c1")).await;
    assert!(left.abs_diff(Keep::default().failed.as_secs()) < 60, "{left}");
}

#[tokio::test]
async fn what_is_on_its_way_from_a_rung_is_waited_for() {
    let fixture = Fixture::new().await;
    fixture.claim(&fixture.worker, 0).await;
    let crawl = "{crawled_urls}:crawl:c";
    let () = fixture.ask(redis::cmd("HSET").arg(crawl).arg("pass").arg(1)).await;
    let before = fixture.frontier.now().await.unwrap();
    fixture.frontier.await_parked(&fixture.crawl, Duration::ZERO).await.unwrap();
    let barrier: u64 = fixture.ask(redis::cmd("HGET").arg(crawl).arg("barrier")).await;
    assert!(UnixMs(barrier) >= before.plus(LOST_AFTER));
}

/// Opens a crawl for `holder`, which dies; lets its discovery end; and has another holder read the sources `0001`.
async fn makes_good(holder: &str) {
    let fixture = Fixture::new().await;
    let open = async |holder: &str| {
        fixture.frontier.open(&fixture.crawl, Terms::default(), holder, HOUR, Past::Possible).await.unwrap()
    };
    let stats = async || fixture.frontier.crawl_stats(&fixture.crawl.id).await.unwrap().unwrap();
    let dead = open(holder).await;
    fixture.send(&dead, 0..1).await;
    fixture.set_clock(26 * HOUR).await;
    fixture.round().await;
    assert!(!stats().await.discovered, "another producer may come");
    fixture.set_clock(26 * HOUR + 2 * LOST_AFTER).await;
    fixture.round().await;
    let ended = stats().await;
    assert_eq!((ended.discovered, ended.incomplete), (true, true));
    let successor = open("successor 0001").await;
    fixture.frontier.close(successor, Some(SourcesRead::default())).await.unwrap();
    let ended = stats().await;
    assert_eq!((ended.discovered, ended.incomplete), (true, false));
}

#[tokio::test]
async fn sources_that_were_left_are_read_after_discovery_has_ended() {
    makes_good("dead 0001").await;
    makes_good("says-nothing-of-its-sources").await;
}

#[tokio::test]
async fn what_can_be_read_only_once_leaves_no_field_when_it_was_read() {
    let fixture = Fixture::new().await;
    let once = SourcesRead { is_once: true, ..SourcesRead::default() };
    for number in 1..4 {
        let holder = format!("producer 000{number}");
        let lease = fixture
            .frontier
            .open(&fixture.crawl, Terms::default(), &holder, HOUR, Past::Possible)
            .await
            .unwrap();
        fixture.send(&lease, 0..1).await;
        fixture.frontier.close(lease, Some(once)).await.unwrap();
    }
    let fields: Vec<String> = fixture.ask(redis::cmd("HKEYS").arg("{crawled_urls}:crawl:c")).await;
    assert!(fields.iter().all(|field| !field.starts_with("unread ")), "{fields:?}");
}
