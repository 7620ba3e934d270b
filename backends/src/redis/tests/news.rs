//! An event of a crawl is offered, and offered again until somebody has announced it.

use trawl_common::events::{CrawlEvent, EventKind};
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::ports::{Control, Finish, Heartbeat, HoldCrawl, Stats};
use trawl_common::settings::Events;
use trawl_common::time::UnixMs;

use super::*;
use crate::redis::crawls::quality::LOW_QUALITY;

impl Fixture {
    /// Returns the events that a sweeper finds which takes a crawl for stalled after an hour.
    async fn news(&self) -> Vec<EventKind> {
        self.look().await.news.iter().map(|event| event.kind).collect()
    }

    /// Finds the events and announces all of them.
    async fn tell(&self) -> Vec<EventKind> {
        let found = self.look().await;
        for event in &found.news {
            self.frontier.announced(event).await.unwrap();
        }
        found.news.iter().map(|event| event.kind).collect()
    }

    async fn look(&self) -> Sweep {
        let events = Events { stalled_after: HOUR, ..Events::default() };
        let frontier = RedisRecords::with_clock(self.link.clone(), LATER, LOST_AFTER, Dedup::Plain);
        frontier.with_events(events).sweep(&self.worker).await.unwrap()
    }

    /// Holds the crawl, and resumes it. Returns its event, which is of this kind and told once.
    async fn hold(&self, why: &str, kind: EventKind) -> CrawlEvent {
        self.frontier.hold(&self.crawl, why).await.unwrap();
        assert_eq!(self.news().await, [kind]);
        let event = self.look().await.news.remove(0);
        assert_eq!((self.tell().await, self.news().await), (vec![kind], vec![]));
        self.frontier.resume(&self.crawl).await.unwrap();
        assert_eq!(self.news().await, []);
        event
    }

    async fn end(&self, number: usize, terminal: Terminal) {
        self.claim(&self.worker, number).await;
        let note = (terminal == Terminal::Failed)
            .then(|| DeadLetterEntry::new(Cause { attempts: 1, ..Cause::new(Reason::Final, "", UnixMs(0)) }));
        let finish = Finish { note, ..Finish::new(self.claim_on(number), terminal) };
        assert_eq!(self.frontier.finish(&self.worker, &[finish]).await.unwrap(), [true]);
    }
}

#[tokio::test]
async fn the_start_of_a_crawl_is_told_until_it_is_announced_and_before_its_end() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    assert_eq!(fixture.news().await, [EventKind::Started]);
    fixture.end(0, Terminal::Done).await;
    fixture.frontier.close(lease, None).await.unwrap();
    assert_eq!(fixture.news().await, [EventKind::Started, EventKind::Finished], "nobody has announced it");
    assert_eq!(fixture.tell().await, [EventKind::Started, EventKind::Finished]);
    assert_eq!(fixture.news().await, []);
}

#[tokio::test]
async fn a_crawl_has_stalled_when_no_url_ends_for_a_while_once_each_time() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..3).await;
    fixture.tell().await;
    fixture.set_clock(25 * HOUR).await;
    assert_eq!(fixture.news().await, [EventKind::Stalled]);
    assert_eq!(fixture.tell().await, [EventKind::Stalled], "nobody has announced it");
    assert_eq!(fixture.news().await, []);
    fixture.end(0, Terminal::Done).await;
    assert_eq!(fixture.tell().await, [], "it goes on");
    fixture.set_clock(26 * HOUR + LOST_AFTER).await;
    assert_eq!(fixture.tell().await, [EventKind::Stalled], "and has stalled again");
}

#[tokio::test]
async fn a_crawl_that_is_held_or_has_nothing_to_do_has_not_stalled() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.tell().await;
    fixture.set_clock(30 * HOUR).await;
    assert_eq!(fixture.tell().await, [], "its sources name nothing yet");
    fixture.send(&lease, 0..1).await;
    assert_eq!(fixture.tell().await, []);
    fixture.frontier.pause(&fixture.crawl).await.unwrap();
    fixture.set_clock(40 * HOUR).await;
    assert_eq!(fixture.tell().await, [], "a person holds it");
    fixture.frontier.resume(&fixture.crawl).await.unwrap();
    assert_eq!(fixture.tell().await, [], "the time counts from now on");
    fixture.set_clock(41 * HOUR).await;
    assert_eq!(fixture.tell().await, [EventKind::Stalled]);
}

#[tokio::test]
async fn a_crawl_that_has_stalled_has_not_yet_when_it_goes_on_after_a_pause() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    fixture.tell().await;
    fixture.set_clock(25 * HOUR).await;
    let is_stalled = async || fixture.frontier.crawl_stats(&fixture.crawl.id).await.unwrap().unwrap().stalled;
    assert_eq!((fixture.tell().await, is_stalled().await), (vec![EventKind::Stalled], true));
    fixture.frontier.pause(&fixture.crawl).await.unwrap();
    fixture.tell().await;
    fixture.frontier.resume(&fixture.crawl).await.unwrap();
    assert!(!is_stalled().await);
    assert_eq!((fixture.tell().await, is_stalled().await), (vec![], false), "the time counts from now on");
    fixture.set_clock(26 * HOUR).await;
    assert_eq!((fixture.tell().await, is_stalled().await), (vec![EventKind::Stalled], true));
}

#[tokio::test]
async fn a_crawl_that_is_held_is_told_of_once_each_time() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    fixture.tell().await;
    for _ in 0..2 {
        let event = fixture.hold("the log-in fails", EventKind::Lapsed).await;
        assert_eq!(event.name(), "session.lapsed");
        let body = serde_json::to_value(&event).unwrap();
        assert_eq!(body["held"], "the log-in fails");
        assert!(body["notes"][0].as_str().unwrap().contains("trawl resume c"), "{body}");
    }
}

#[tokio::test]
async fn a_crawl_that_pauses_itself_for_its_quality_is_told_of_as_such() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    fixture.tell().await;
    for _ in 0..2 {
        fixture.frontier.keep_noted(&fixture.crawl, LOW_QUALITY, &1).await.unwrap();
        let event = fixture.hold("[quality] failed: 90 %", EventKind::Quality).await;
        let id = format!("{}.quality.0", fixture.crawl.id);
        assert_eq!((event.name(), event.id()), ("crawl.quality".to_owned(), id));
        let body = serde_json::to_value(&event).unwrap();
        assert!(body["notes"][0].as_str().unwrap().contains("[quality] failed"), "{body}");
    }
}

#[tokio::test]
async fn a_crawl_whose_sink_is_away_is_told_of_once() {
    let fixture = Fixture::new().await;
    // Less than a day ahead of this machine's clock, by which heartbeats are kept.
    fixture.set_clock(HOUR).await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..2).await;
    fixture.tell().await;
    let beat = async |trouble: Option<&str>| {
        let of = |why: &str| (fixture.crawl.spider.clone(), why.to_owned());
        let beat = Heartbeat {
            trouble: Some("spider other: postgres: connection refused".to_owned()),
            troubles: trouble.map(of).into_iter().collect(),
            ..Heartbeat::idle(fixture.worker.clone())
        };
        // It is kept, and refused only since the test's clock is far from this machine's.
        fixture.frontier.beat(&beat, HOUR).await.unwrap_err();
    };
    beat(None).await;
    assert_eq!((fixture.news().await, fixture.news().await), (vec![], vec![]), "another spider's");
    beat(Some("spider default: postgres: connection refused")).await;
    assert_eq!(fixture.news().await, [], "it may pass at once");
    let event = fixture.look().await.news.remove(0);
    assert_eq!((event.name(), fixture.tell().await), ("crawl.degraded".to_owned(), vec![event.kind]));
    let body = serde_json::to_value(&event).unwrap();
    let note = body["notes"][0].as_str().unwrap();
    assert!(note.ends_with("once this is mended: spider default: postgres: connection refused"), "{note}");
    fixture.set_clock(HOUR + Duration::from_secs(240)).await;
    assert_eq!(fixture.news().await, [], "it goes on");
    fixture.set_clock(HOUR + Duration::from_secs(800)).await;
    // The first one after the clock was set makes the process follow it.
    beat(None).await;
    beat(Some("spider default: postgres: connection refused")).await;
    assert_eq!(fixture.news().await, [], "it has just begun again");
    assert_eq!(fixture.tell().await, [EventKind::Degraded], "after five minutes without it");
}

#[tokio::test]
async fn a_crawl_whose_urls_fail_is_told_of_once() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..30).await;
    fixture.tell().await;
    for number in 0..19 {
        fixture.end(number, Terminal::Failed).await;
    }
    assert_eq!(fixture.news().await, [], "too few to say");
    fixture.end(19, Terminal::Failed).await;
    assert_eq!(fixture.news().await, [EventKind::Failing]);
    assert_eq!(fixture.tell().await, [EventKind::Failing], "nobody has announced it");
    fixture.end(20, Terminal::Failed).await;
    assert_eq!(fixture.news().await, []);
}

#[tokio::test]
async fn what_was_told_of_a_crawl_holds_up_nothing_when_somebody_has_written_over_it() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    let () = fixture.ask(redis::cmd("SET").arg("{crawled_urls}:told:c").arg("1")).await;
    fixture.send(&lease, 0..1).await;
    fixture.end(0, Terminal::Done).await;
    fixture.frontier.close(lease, None).await.unwrap();
    assert_eq!(fixture.news().await, [EventKind::Finished]);
}
