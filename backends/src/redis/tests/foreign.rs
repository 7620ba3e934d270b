//! A key of one crawl or host that somebody has written over stops that one, and no other.

use trawl_common::frontier::StartReply;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::politeness::gcra::{Pace, SlotRequest, Standing};
use trawl_common::ports::{Control, ErrorKind, Finish, Heartbeat, HostControl, Stats};
use trawl_common::web::host::HostKey;
use trawl_engine::{Parking, Past};

use super::*;
use crate::redis::keys;

impl Fixture {
    /// Another crawl on the same server, of another spider, with two pages that are lost in a day.
    async fn other_crawl(&self) -> CrawlRef {
        let crawl = CrawlRef { id: "d".parse().unwrap(), spider: "other".parse().unwrap() };
        let lease = self
            .frontier
            .open(&crawl, Terms::default(), "producer", 100 * HOUR, Past::Possible)
            .await
            .unwrap();
        self.send(&lease, 0..2).await;
        crawl
    }
}

#[tokio::test]
async fn a_key_that_somebody_has_written_over_stops_its_crawl_and_no_other() {
    for name in ["crawl:c", "pending:c", "outbox", "leases"] {
        let fixture = Fixture::new().await;
        let lease = fixture.open().await;
        fixture.send(&lease, 0..2).await;
        assert_eq!(fixture.claim(&fixture.worker, 0).await, TAKE);
        let other = fixture.other_crawl().await;
        let key = format!("{{crawled_urls}}:{name}");
        let () = fixture.ask(redis::cmd("SET").arg(&key).arg("1")).await;

        let urls = |crawl: &CrawlRef| {
            [0, 1].map(|number| Claim { crawl: crawl.clone(), key: Fixture::url(number).into() })
        };
        let [held, unclaimed] = urls(&fixture.crawl);
        let [sound, late] = urls(&other);
        let message =
            |claim: &Claim| Message::seed(claim.key.url().unwrap().clone(), claim.crawl.clone(), Lane::Bulk);
        let replies =
            fixture.frontier.claim(&fixture.worker, &[message(&unclaimed), message(&sound)]).await.unwrap();
        assert_eq!(replies[1], TAKE, "{name}");
        let started = fixture.frontier.start(&fixture.worker, &[held.clone(), sound.clone()]).await.unwrap();
        assert_eq!(started[1], StartReply::Go, "{name}");
        let until = fixture.frontier.now().await.unwrap();
        let parking = |claim: &Claim| Parking { claim: claim.clone(), until, failed: true };
        let parked =
            fixture.frontier.park(&fixture.worker, &[parking(&held), parking(&sound)]).await.unwrap();
        assert!(parked[1], "{name}");
        fixture.frontier.claim(&fixture.worker, &[message(&sound)]).await.unwrap();
        fixture.frontier.extend(&fixture.worker, &[message(&held), message(&sound)]).await.unwrap();
        let finish = |claim: &Claim| Finish::new(claim.clone(), Terminal::Done);
        let ended = fixture.frontier.finish(&fixture.worker, &[finish(&held), finish(&sound)]).await.unwrap();
        assert!(ended[1], "{name}");
        fixture.frontier.release(&fixture.worker, &[held.clone(), late.clone()]).await.unwrap();
        let invalid =
            |crawl: &CrawlRef| DeadLetter::invalid("x".into(), crawl.clone(), "no URL".into(), None);
        fixture.frontier.note_invalid(&[invalid(&fixture.crawl), invalid(&other)]).await.unwrap();
        fixture.set_clock(24 * HOUR + LOST_AFTER).await;
        fixture
            .ask::<()>(
                redis::cmd("HSET").arg("tides").arg("gap:bulk").arg(fixture.frontier.now().await.unwrap().0),
            )
            .await;
        let lost: Vec<CrawlRef> = fixture.round().await.lost.into_iter().map(|lost| lost.crawl).collect();
        assert!(lost.contains(&other), "{name}: {lost:?}");
        assert!(
            fixture.frontier.crawls().await.unwrap().iter().any(|stats| stats.crawl == other.id),
            "{name}"
        );
        fixture.frontier.cancel(&other).await.unwrap();
    }
}

#[tokio::test]
async fn a_field_that_somebody_has_written_over_is_named_and_stops_its_crawl_until_it_is_set_right() {
    for (field, wrong, right) in [
        ("status", "going", "running"),
        ("max_pages", "many", "9"),
        ("max_per_host", "few", "9"),
        ("recrawl", "sometimes", "never"),
        ("done", "x", "0"),
        ("ended", "soon", "0"),
    ] {
        let fixture = Fixture::new().await;
        let lease = fixture.open().await;
        fixture.send(&lease, 0..2).await;
        let other = fixture.other_crawl().await;
        let set = async |value: &str| {
            let key = "{crawled_urls}:crawl:c";
            fixture.ask::<()>(redis::cmd("HSET").arg(key).arg(field).arg(value)).await;
        };
        set(wrong).await;
        let sound = Message::seed(Fixture::url(0), other.clone(), Lane::Bulk);
        let replies = fixture.frontier.claim(&fixture.worker, &[fixture.message(0), sound]).await.unwrap();
        assert!(matches!(replies[..], [ClaimReply::Wait { .. }, TAKE]), "{field}: {replies:?}");
        let outcome = match field {
            "max_pages" | "max_per_host" | "recrawl" => {
                fixture.frontier.terms(&fixture.crawl).await.map(drop)
            }
            _ => fixture.frontier.crawl_stats(&fixture.crawl.id).await.map(drop),
        };
        let error = outcome.unwrap_err();
        assert!(error.kind == ErrorKind::Corrupt && error.to_string().contains(field), "{error}");
        fixture.round().await;
        set(right).await;
        assert_eq!(fixture.claim(&fixture.worker, 1).await, TAKE, "{field}");
    }
}

#[tokio::test]
async fn a_script_that_stumbles_over_a_field_stops_its_crawl_and_no_other() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    assert_eq!(fixture.claim(&fixture.worker, 0).await, TAKE);
    let other = fixture.other_crawl().await;
    let sound = Claim { crawl: other.clone(), key: Fixture::url(0).into() };
    let message = Message::seed(Fixture::url(0), other, Lane::Bulk);
    assert_eq!(fixture.frontier.claim(&fixture.worker, &[message]).await.unwrap(), [TAKE]);
    let () = fixture.ask(redis::cmd("HSET").arg("{crawled_urls}:crawl:c").arg("max_pages").arg("many")).await;
    let started =
        fixture.frontier.start(&fixture.worker, &[fixture.claim_on(0), sound.clone()]).await.unwrap();
    assert_eq!(started, [StartReply::Lost, StartReply::Go]);
    let finishes = [fixture.claim_on(0), sound].map(|claim| Finish::new(claim, Terminal::Done));
    assert_eq!(fixture.frontier.finish(&fixture.worker, &finishes).await.unwrap(), [false, true]);
}

#[tokio::test]
async fn a_worker_that_somebody_has_written_over_stops_no_sweep() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    fixture.set_clock(HOUR).await;
    for _ in 0..2 {
        // It is kept, and refused only since the test's clock, which the process then follows, is far from this
        // machine's.
        fixture.frontier.beat(&Heartbeat::idle(fixture.worker.clone()), HOUR).await.unwrap_err();
    }
    assert_eq!(fixture.frontier.workers().await.unwrap().len(), 1);
    let () = fixture.ask(redis::cmd("SET").arg(keys::worker(&fixture.worker)).arg("1")).await;
    assert_eq!(fixture.frontier.workers().await.unwrap_err().kind, ErrorKind::Corrupt);
    fixture.frontier.sweep(&fixture.worker).await.unwrap();
}

#[tokio::test]
async fn an_entry_in_the_list_of_crawls_that_cannot_be_read_hides_no_other() {
    let fixture = Fixture::new().await;
    let _lease = fixture.open().await;
    for (id, spider) in [(&b"\xff"[..], &b"default"[..]), (b"d", b"no spider!")] {
        let () = fixture.ask(redis::cmd("HSET").arg("crawls").arg(id).arg(spider)).await;
    }
    let crawls = fixture.frontier.crawls().await.unwrap();
    assert_eq!(crawls.iter().map(|stats| &stats.crawl).collect::<Vec<_>>(), [&fixture.crawl.id]);
    let error = fixture.frontier.crawl_stats(&"d".parse().unwrap()).await.unwrap_err();
    assert!(error.kind == ErrorKind::Corrupt && error.to_string().contains("no spider!"), "{error}");
}

#[tokio::test]
async fn a_host_whose_schedule_cannot_be_read_is_not_asked_at_once() {
    let fixture = Fixture::new().await;
    let request = SlotRequest {
        pace: Pace::UNLIMITED,
        held: None,
        standing: Standing::New,
        deadline: None,
        token: 0,
        lapse: LOST_AFTER,
    };
    for (field, value) in [("until", "later"), ("next", "x"), ("p:1", "1 y")] {
        let ask = HostSlotRequest { key: HostKey::from_text(&format!("{}.example", &field[..1])), request };
        let key = format!("ratelimit:{}", ask.key);
        let () = fixture.ask(redis::cmd("HSET").arg(&key).arg(field).arg(value)).await;
        let slot = fixture.slot(&ask).await;
        assert!(matches!(slot, Slot::Later { wait, .. } if wait >= Duration::from_secs(60)), "{slot:?}");
        let () = fixture.ask(redis::cmd("HDEL").arg(&key).arg(field)).await;
        assert_eq!(fixture.slot(&ask).await, Slot::Now);
    }
}

#[tokio::test]
async fn the_messages_of_a_crawl_that_somebody_has_written_over_wait() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    let () = fixture.ask(redis::cmd("SET").arg("{crawled_urls}:pending:c").arg("1")).await;
    assert!(matches!(fixture.claim(&fixture.worker, 0).await, ClaimReply::Wait { .. }));
    let named = fixture.frontier.keys_of_wrong_type(&fixture.crawl).await.unwrap();
    assert_eq!(named, ["{crawled_urls}:pending:c (a string, not a hash)"]);
}

#[tokio::test]
async fn a_host_whose_key_somebody_has_written_over_is_left_alone_and_others_are_asked() {
    let fixture = Fixture::new().await;
    let pace = Pace { interval: Duration::from_secs(1), burst: 1, concurrency: 0 };
    let request = SlotRequest {
        pace,
        held: None,
        standing: Standing::New,
        deadline: None,
        token: 0,
        lapse: LOST_AFTER,
    };
    let ask = |host| HostSlotRequest { key: HostKey::from_text(host), request };
    let () = fixture.ask(redis::cmd("SET").arg("ratelimit:taken.example").arg("1")).await;
    let slots = fixture.hosts.reserve(&[ask("taken.example"), ask("sound.example")]).await.unwrap();
    assert!(matches!(slots[0], Slot::Later { wait, .. } if wait >= Duration::from_secs(60)), "{slots:?}");
    assert_eq!(slots[1], Slot::Now);
}

#[tokio::test]
async fn a_schedule_that_somebody_has_written_over_is_left_out_of_the_list_of_hosts() {
    let fixture = Fixture::new().await;
    let hosts = &fixture.hosts;
    let keys = ["a.example", "b.example"].map(HostKey::from_text);
    for key in &keys {
        hosts.block(key).await.unwrap();
    }
    let () = fixture.ask(redis::cmd("SET").arg("ratelimit:a.example").arg("1")).await;
    let listed = hosts.hosts().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(hosts.host(&keys[0]).await.is_err() && hosts.host(&keys[1]).await.unwrap().is_some());
}
