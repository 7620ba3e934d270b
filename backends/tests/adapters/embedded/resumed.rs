//! The state of one process as the next process reads it.

use std::sync::Arc;
use std::time::Duration;

use super::support::*;
use tempfile::TempDir;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::outcome::Reason;
use trawl_common::politeness::gcra::{Pace, Slot};
use trawl_common::ports::{Disposition, HostSlotRequest, Opening, Settlement, SourcesRead, Terms};
use trawl_common::time::UnixMs;

/// A request for a slot of a host that allows one request in this many seconds.
fn ask_every(seconds: u64) -> HostSlotRequest {
    let mut ask = ask("site.example");
    ask.request.pace = Pace { interval: Duration::from_secs(seconds), ..Pace::UNLIMITED };
    ask
}

/// Whether the slot is reserved for at most this many seconds from now, and at least one second less.
fn is_about(slot: Slot, seconds: u64) -> bool {
    let limits = Duration::from_secs(seconds - 1)..=Duration::from_secs(seconds);
    matches!(slot, Slot::Reserved { wait, .. } if limits.contains(&wait))
}

/// Returns an engine whose state file this SQL changed after `admitted` URLs had come; two are done since.
async fn two_done_after(sql: &str, admitted: usize) -> (TempDir, Embedded) {
    let (directory, engine) = state_file();
    admit(&engine, 0..admitted).await.close().await.unwrap();
    drop(engine);
    change(&directory, sql);
    let engine = open(&directory.path().join("crawl.db"));
    let worker = join(&engine);
    let claimed = claim_all(&*worker, 2).await;
    worker.settle(claimed.iter().map(done).collect()).await.unwrap();
    (directory, engine)
}

#[tokio::test]
async fn a_host_is_asked_no_sooner_because_another_process_goes_on_and_at_the_new_rate_at_once() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    // The second slot does not count: its holder will ask for another one.
    let slots = engine.hosts().reserve(&[ask_every(20), ask_every(20)]).await.unwrap();
    assert!(slots[0] == Slot::Now && is_about(slots[1], 20), "{slots:?}");
    let session = admit(&engine, 0..1).await;
    drop((session, engine));
    for (seconds, expected) in [(20, 20), (10, 10), (20, 20)] {
        let engine = open(&path);
        let slots = engine.hosts().reserve(&[ask_every(seconds)]).await.unwrap();
        assert!(is_about(slots[0], expected), "{seconds}: {slots:?}");
    }
}

#[tokio::test]
async fn what_waits_for_a_slot_of_its_host_asks_for_another_one_in_the_next_process() {
    let (directory, engine) = state_file();
    let _session = admit(&engine, 0..3).await;
    let worker = join(&engine);
    let later = UnixMs::now().plus(LONG);
    let mut batch = Vec::new();
    for claimed in worker.claim(3).await.unwrap() {
        let number = number(&claimed);
        let mut message = claimed.message;
        message.slot = (number == 0).then_some(later);
        message.turn = (number == 1).then_some((later, 1));
        let disposition = match number {
            2 => Disposition::Retry { until: later },
            _ => Disposition::Snooze { until: later },
        };
        batch.push(Settlement { message, disposition });
    }
    worker.settle(batch).await.unwrap();
    drop((_session, worker, engine));
    let engine = open(&directory.path().join("crawl.db"));
    let claimed = claim_all(&*join(&engine), 2).await;
    assert_eq!(claimed.iter().map(number).collect::<Vec<_>>(), [0, 1], "a failure waits for its time");
    assert!(claimed.iter().all(|claimed| claimed.message.slot.is_none() && claimed.message.turn.is_none()));
}

#[tokio::test]
async fn what_was_put_aside_comes_in_time_though_the_clock_was_set_back_in_between() {
    let (directory, engine) = state_file();
    let _session = admit(&engine, 0..1).await;
    let worker = join(&engine);
    let claimed = worker.claim(1).await.unwrap();
    put_aside(&*worker, &claimed[0], 0).await;
    drop((_session, worker, engine));
    change(&directory, "UPDATE crawls SET touched = touched + 3600000");
    change(&directory, "UPDATE records SET due = due + 3600000");
    assert_eq!(available(&open(&directory.path().join("crawl.db")), 1).await, [0]);
}

/// Otherwise the crawl would wait for it forever.
#[tokio::test]
async fn what_would_never_be_given_to_anyone_is_a_dead_letter() {
    let changes = [
        ("due", "UPDATE records SET due = 1 << 60 WHERE url LIKE '%/1'"),
        ("crawl", "UPDATE records SET crawl = crawl + 64 WHERE url LIKE '%/1'"),
        ("record", "UPDATE fresh SET url = x'00000000000000000000000000000000' WHERE record = 2"),
        ("record", "UPDATE fresh SET record = record + 64 WHERE record = 2"),
        ("record", "UPDATE records SET url = 'http://site.example/5' WHERE url LIKE '%/1'"),
    ];
    for (field, sql) in changes {
        let (_directory, engine) = two_done_after(sql, 3).await;
        let stats = engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
        assert!(stats.status.is_over(), "{sql}: {stats:?}");
        assert_eq!((stats.counts.admitted, stats.counts.done, stats.counts.failed), (3, 2, 1), "{sql}");
        let listed = engine.control().failed(&crawl(), 0).await.unwrap().failed;
        let [(_, note)] = &listed[..] else { panic!("{sql}: {listed:?}") };
        assert_eq!(note.cause.reason, Reason::Corrupt);
        assert!(note.cause.error.contains(&format!("the field {field} of ")), "{}", note.cause.error);
    }
}

#[tokio::test]
async fn a_crawl_whose_counters_disagree_with_its_records_ends_with_the_last_of_these() {
    for sql in ["UPDATE crawls SET admitted = admitted + 64", "UPDATE crawls SET done = done + 1024"] {
        let (_directory, engine) = two_done_after(sql, 2).await;
        assert!(engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap().status.is_over(), "{sql}");
    }
}

#[tokio::test]
async fn sources_that_a_process_was_reading_when_it_died_are_unread_until_another_has_read_them() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    let read = async |engine: &Embedded| {
        let (crawl, terms) = (crawl(), Terms::default());
        let opening =
            Opening { judging: None, crawl, terms, text: None, is_new: false, lease: LONG, reads: Some(1) };
        engine.engine().open(opening, Arc::default()).await.unwrap()
    };
    let is_incomplete =
        async |engine: &Embedded| engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap().incomplete;
    let session = read(&engine).await;
    session.admit(&[page(0)]).await.unwrap();
    assert!(!is_incomplete(&engine).await, "they are being read");
    drop((session, engine));
    let engine = open(&path);
    assert!(is_incomplete(&engine).await);
    read(&engine).await.close_read(Some(SourcesRead::default())).await.unwrap();
    assert!(!is_incomplete(&engine).await);
    drop(engine);
    assert!(!is_incomplete(&open(&path)).await);
}
