//! A key of one crawl or host that somebody has written over stops that one, and no other.

use trawl_common::frontier::Start;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::politeness::gcra::{Pace, SlotRequest, Standing};
use trawl_common::ports::{Control, ErrorKind, Finish, Stats};
use trawl_common::web::host::HostKey;
use trawl_engine::Parking;

use super::*;

impl Stage {
    /// Another crawl on the same server, of another spider, with two pages that are lost in a day.
    async fn other_crawl(&self) -> CrawlRef {
        let crawl = CrawlRef { id: "d".parse().unwrap(), spider: "other".parse().unwrap() };
        let lease = self.frontier.open(&crawl, Terms::default(), "producer", 100 * HOUR).await.unwrap();
        self.send(&lease, 0..2).await;
        crawl
    }
}

#[tokio::test]
async fn a_key_that_somebody_has_written_over_stops_its_crawl_and_no_other() {
    for name in ["crawl:c", "pending:c", "outbox", "leases"] {
        let stage = Stage::new().await;
        let lease = stage.open().await;
        stage.send(&lease, 0..2).await;
        assert_eq!(stage.hear(&stage.worker, 0).await, TAKE);
        let other = stage.other_crawl().await;
        let key = format!("{{crawled_urls}}:{name}");
        let () = stage.ask(redis::cmd("SET").arg(&key).arg("1")).await;

        let urls =
            |crawl: &CrawlRef| [0, 1].map(|number| Claim { crawl: crawl.clone(), url: Stage::url(number) });
        let [held, unheard] = urls(&stage.crawl);
        let [sound, late] = urls(&other);
        let message = |claim: &Claim| Message::seed(claim.url.clone(), claim.crawl.clone(), Lane::Bulk);
        let heard = stage.frontier.hear(&stage.worker, &[message(&unheard), message(&sound)]).await.unwrap();
        assert_eq!(heard[1], TAKE, "{name}");
        let started = stage.frontier.start(&stage.worker, &[held.clone(), sound.clone()]).await.unwrap();
        assert_eq!(started[1], Start::Go, "{name}");
        let until = stage.frontier.now().await.unwrap();
        let parking = |claim: &Claim| Parking { claim: claim.clone(), until, failed: true };
        let parked = stage.frontier.park(&stage.worker, &[parking(&held), parking(&sound)]).await.unwrap();
        assert!(parked[1], "{name}");
        stage.frontier.hear(&stage.worker, &[message(&sound)]).await.unwrap();
        stage.frontier.keep(&stage.worker, &[message(&held), message(&sound)]).await.unwrap();
        let finish = |claim: &Claim| Finish::new(claim.clone(), Terminal::Done);
        let ended = stage.frontier.finish(&stage.worker, &[finish(&held), finish(&sound)]).await.unwrap();
        assert!(ended[1], "{name}");
        stage.frontier.release(&stage.worker, &[held.clone(), late.clone()]).await.unwrap();
        let invalid =
            |crawl: &CrawlRef| DeadLetter::invalid("x".into(), crawl.clone(), "no URL".into(), None);
        stage.frontier.note_invalid(&[invalid(&stage.crawl), invalid(&other)]).await.unwrap();
        stage.set_clock(24 * HOUR + PATIENCE).await;
        stage
            .ask::<()>(
                redis::cmd("HSET").arg("tides").arg("gap:bulk").arg(stage.frontier.now().await.unwrap().0),
            )
            .await;
        let lost: Vec<CrawlRef> = stage.round().await.lost.into_iter().map(|lost| lost.crawl).collect();
        assert!(lost.contains(&other), "{name}: {lost:?}");
        assert!(stage.frontier.crawls().await.unwrap().iter().any(|stats| stats.crawl == other.id), "{name}");
        stage.frontier.cancel(&other).await.unwrap();
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
        let stage = Stage::new().await;
        let lease = stage.open().await;
        stage.send(&lease, 0..2).await;
        let other = stage.other_crawl().await;
        let set = async |value: &str| {
            let key = "{crawled_urls}:crawl:c";
            stage.ask::<()>(redis::cmd("HSET").arg(key).arg(field).arg(value)).await;
        };
        set(wrong).await;
        let sound = Message::seed(Stage::url(0), other.clone(), Lane::Bulk);
        let heard = stage.frontier.hear(&stage.worker, &[stage.message(0), sound]).await.unwrap();
        assert!(matches!(heard[..], [Heard::Wait { .. }, TAKE]), "{field}: {heard:?}");
        let told = match field {
            "max_pages" | "max_per_host" | "recrawl" => stage.frontier.terms(&stage.crawl).await.map(drop),
            _ => stage.frontier.crawl_stats(&stage.crawl.id).await.map(drop),
        };
        let told = told.unwrap_err();
        assert!(told.kind == ErrorKind::Corrupt && told.to_string().contains(field), "{told}");
        stage.round().await;
        set(right).await;
        assert_eq!(stage.hear(&stage.worker, 1).await, TAKE, "{field}");
    }
}

#[tokio::test]
async fn a_script_that_stumbles_over_a_field_stops_its_crawl_and_no_other() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.send(&lease, 0..1).await;
    assert_eq!(stage.hear(&stage.worker, 0).await, TAKE);
    let other = stage.other_crawl().await;
    let sound = Claim { crawl: other.clone(), url: Stage::url(0) };
    let message = Message::seed(Stage::url(0), other, Lane::Bulk);
    assert_eq!(stage.frontier.hear(&stage.worker, &[message]).await.unwrap(), [TAKE]);
    let () = stage.ask(redis::cmd("HSET").arg("{crawled_urls}:crawl:c").arg("max_pages").arg("many")).await;
    let started = stage.frontier.start(&stage.worker, &[stage.claim(0), sound.clone()]).await.unwrap();
    assert_eq!(started, [Start::Lost, Start::Go]);
    let finishes = [stage.claim(0), sound].map(|claim| Finish::new(claim, Terminal::Done));
    assert_eq!(stage.frontier.finish(&stage.worker, &finishes).await.unwrap(), [false, true]);
}

#[tokio::test]
async fn an_entry_in_the_list_of_crawls_that_cannot_be_read_hides_no_other() {
    let stage = Stage::new().await;
    let _lease = stage.open().await;
    for (id, spider) in [(&b"\xff"[..], &b"default"[..]), (b"d", b"no spider!")] {
        let () = stage.ask(redis::cmd("HSET").arg("crawls").arg(id).arg(spider)).await;
    }
    let crawls = stage.frontier.crawls().await.unwrap();
    assert_eq!(crawls.iter().map(|stats| &stats.crawl).collect::<Vec<_>>(), [&stage.crawl.id]);
    let told = stage.frontier.crawl_stats(&"d".parse().unwrap()).await.unwrap_err();
    assert!(told.kind == ErrorKind::Corrupt && told.to_string().contains("no spider!"), "{told}");
}

#[tokio::test]
async fn a_host_whose_schedule_cannot_be_read_is_not_asked_at_once() {
    let stage = Stage::new().await;
    let request = SlotRequest {
        pace: Pace::UNLIMITED,
        held: None,
        standing: Standing::New,
        deadline: None,
        token: 0,
        lapse: PATIENCE,
    };
    for (field, value) in [("until", "later"), ("next", "x"), ("p:1", "1 y")] {
        let ask = HostSlotRequest { key: HostKey::from_text(&format!("{}.example", &field[..1])), request };
        let key = format!("ratelimit:{}", ask.key);
        let () = stage.ask(redis::cmd("HSET").arg(&key).arg(field).arg(value)).await;
        let slot = stage.slot(&ask).await;
        assert!(matches!(slot, Slot::Later { wait, .. } if wait >= Duration::from_secs(60)), "{slot:?}");
        let () = stage.ask(redis::cmd("HDEL").arg(&key).arg(field)).await;
        assert_eq!(stage.slot(&ask).await, Slot::Now);
    }
}

#[tokio::test]
async fn the_messages_of_a_crawl_that_somebody_has_written_over_wait() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.send(&lease, 0..1).await;
    let () = stage.ask(redis::cmd("SET").arg("{crawled_urls}:pending:c").arg("1")).await;
    assert!(matches!(stage.hear(&stage.worker, 0).await, Heard::Wait { .. }));
    let named = stage.frontier.foreign_keys(&stage.crawl).await.unwrap();
    assert_eq!(named, ["{crawled_urls}:pending:c (a string, not a hash)"]);
}

#[tokio::test]
async fn a_host_whose_key_somebody_has_written_over_is_left_alone_and_others_are_asked() {
    let stage = Stage::new().await;
    let pace = Pace { interval: Duration::from_secs(1), burst: 1, concurrency: 0 };
    let request =
        SlotRequest { pace, held: None, standing: Standing::New, deadline: None, token: 0, lapse: PATIENCE };
    let ask = |host| HostSlotRequest { key: HostKey::from_text(host), request };
    let () = stage.ask(redis::cmd("SET").arg("ratelimit:taken.example").arg("1")).await;
    let slots = stage.hosts.reserve(&[ask("taken.example"), ask("sound.example")]).await.unwrap();
    assert!(matches!(slots[0], Slot::Later { wait, .. } if wait >= Duration::from_secs(60)), "{slots:?}");
    assert_eq!(slots[1], Slot::Now);
}
