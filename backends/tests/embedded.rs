//! The embedded engine keeps every promise of its ports, and those of its file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::sample::subsequence;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::Start;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::{Class, Reason, Terminal};
use trawl_common::health::Health;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::politeness::gcra::{BackoffTerms, Pace, Slot, SlotRequest, Standing};
use trawl_common::ports::{
    BackoffRequest, Cache, Claim, Claimed, Ending, ErrorKind, Finish, Frontier, HostSlotRequest, Joined,
    Joining, NewWork, Opening, Pages, Session, Settlement, Terms, Verdict, Walk,
};
use trawl_common::settings::Settings;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::conformance::carrying::random::{obeys_the_model, steps};
use trawl_testkit::conformance::hosts::{Frugal, HostPorts};
use trawl_testkit::stand_ins::AllRequests;

const LONG: Duration = Duration::from_secs(600);

fn open(path: &Path) -> Embedded {
    Embedded::open(path).unwrap()
}

fn state_file() -> (TempDir, Embedded) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory.path().join("crawl.db"));
    (directory, engine)
}

async fn frugal() -> (TempDir, Frugal) {
    let (directory, engine) = state_file();
    (directory, Frugal { hosts: engine.hosts(), robots_bytes: 32 << 20 })
}

async fn hosts() -> ((), HostPorts) {
    let engine = Embedded::in_memory().unwrap();
    ((), HostPorts { hosts: engine.hosts(), control: engine.host_control() })
}

async fn cache() -> ((), Arc<dyn Cache>) {
    ((), Embedded::in_memory().unwrap().cache())
}

async fn pages() -> (TempDir, Arc<dyn Pages>) {
    let (directory, engine) = state_file();
    (directory, engine.pages())
}

fn carrier_of(engine: &Embedded) -> Carrier {
    Carrier {
        engine: engine.engine(),
        stats: engine.stats(),
        control: engine.control(),
        pages: engine.pages(),
        health: Arc::default(),
        claims_ahead: false,
    }
}

async fn carrier() -> (TempDir, Carrier) {
    let (directory, engine) = state_file();
    let carrier = carrier_of(&engine);
    (directory, carrier)
}

trawl_testkit::carrying_conformance!(carrier);
trawl_testkit::one_process_conformance!(carrier);
trawl_testkit::hosts_conformance!(hosts, frugal);
trawl_testkit::cache_conformance!(cache);
trawl_testkit::pages_conformance!(pages);

fn crawl() -> CrawlRef {
    CrawlRef { id: "c1".parse().unwrap(), spider: "s1".parse().unwrap() }
}

fn worker() -> WorkerId {
    "w1".parse().unwrap()
}

fn page(number: usize) -> NewWork {
    let url = CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap();
    NewWork::seed(url, Lane::Bulk)
}

async fn open_crawl(engine: &Embedded, crawl: CrawlRef) -> Box<dyn Session> {
    let opening = Opening { crawl, terms: Terms::default(), text: None, is_new: false, lease: LONG };
    engine.engine().open(opening, Arc::default()).await.unwrap()
}

async fn admit(engine: &Embedded, numbers: std::ops::Range<usize>) -> Box<dyn Session> {
    let session = open_crawl(engine, crawl()).await;
    let pages: Vec<NewWork> = numbers.map(page).collect();
    session.admit(&pages).await.unwrap();
    session
}

fn join(engine: &Embedded) -> Arc<dyn Frontier> {
    join_with(engine, Arc::default(), LONG).frontier
}

fn join_with(engine: &Embedded, health: Arc<Health>, lost_after: Duration) -> Joined {
    let mut settings = Settings::default();
    settings.worker.prefetch = 1000;
    settings.recovery.lost_after = lost_after;
    let (requests, stop) = (Arc::new(AllRequests), CancellationToken::new());
    engine.engine().join(Joining { worker: worker(), settings, health, requests, tasks: 1000, stop })
}

/// All that is available now, in order.
async fn claim_all(frontier: &dyn Frontier) -> Vec<Claimed> {
    let mut all = Vec::new();
    while let Ok(claimed) = timeout(Duration::from_millis(50), frontier.claim(1000)).await {
        all.extend(claimed);
    }
    all
}

/// The page numbers of what is available now, in order.
async fn available(engine: &Embedded) -> Vec<usize> {
    claim_all(&*join(engine)).await.iter().map(number).collect()
}

fn number(claimed: &Claimed) -> usize {
    claimed.message.work.as_str().rsplit('/').next().unwrap().parse().unwrap()
}

fn done(claimed: &Claimed) -> Settlement {
    let message = claimed.message.clone();
    let ending = Ending::of(Finish::new(Claim::of(&message), Terminal::Done));
    Settlement { message, verdict: Verdict::Ends(Box::new(ending)) }
}

/// Puts a claimed URL aside until so many ms ago.
async fn put_aside(frontier: &dyn Frontier, claimed: &Claimed, ago: u64) {
    let verdict = Verdict::PutAside { until: UnixMs(UnixMs::now().0 - ago), failed: false };
    frontier.settle(vec![Settlement { message: claimed.message.clone(), verdict }]).await;
}

#[tokio::test]
async fn parked_urls_come_first_then_priority_then_bulk_each_in_order() {
    let (_directory, engine) = state_file();
    let session = admit(&engine, 0..4).await;
    let urgent: Vec<_> = (4..6).map(|number| NewWork { lane: Lane::Priority, ..page(number) }).collect();
    session.admit(&urgent).await.unwrap();
    let worker = join(&engine);
    for claimed in claim_all(&*worker).await {
        match number(&claimed) {
            1 => put_aside(&*worker, &claimed, 5_000).await,
            3 => put_aside(&*worker, &claimed, 9_000).await,
            _ => {}
        }
    }
    worker.release().await;
    assert_eq!(available(&engine).await, [3, 1, 4, 5, 0, 2]);
}

#[tokio::test]
async fn what_a_worker_had_is_available_when_it_is_gone() {
    let (_directory, engine) = state_file();
    let _session = admit(&engine, 0..3).await;
    assert_eq!(available(&engine).await, [0, 1, 2]);
    assert_eq!(available(&engine).await, [0, 1, 2]);
}

#[tokio::test]
async fn what_is_given_back_before_its_lane_was_walked_comes_once() {
    let (_directory, engine) = state_file();
    let _session = admit(&engine, 0..3).await;
    let worker = join(&engine);
    let Claimed { message, .. } = worker.claim(1).await.remove(0);
    worker.settle(vec![Settlement { message, verdict: Verdict::Released }]).await;
    assert_eq!(available(&engine).await, [0, 1, 2]);
}

#[tokio::test]
async fn a_paused_crawl_is_handed_out_after_it_and_others_meanwhile() {
    let (_directory, engine) = state_file();
    let session = admit(&engine, 0..4).await;
    let worker = join(&engine);
    let claimed = claim_all(&*worker).await;
    put_aside(&*worker, &claimed[1], 5).await;
    worker.release().await;
    engine.control().pause(&crawl()).await.unwrap();
    let other = CrawlRef { id: "c2".parse().unwrap(), spider: "s2".parse().unwrap() };
    let of_other = open_crawl(&engine, other).await;
    of_other.admit(&[page(7)]).await.unwrap();
    session.admit(&[page(4)]).await.unwrap();
    assert_eq!(available(&engine).await, [7]);
    engine.control().resume(&crawl()).await.unwrap();
    assert_eq!(available(&engine).await, [1, 0, 2, 3, 7, 4]);
}

#[tokio::test]
async fn what_is_forgotten_is_forgotten_beyond_memory_and_the_rest_is_not() {
    let (_directory, engine) = state_file();
    const COUNT: usize = 70_000;
    let _session = admit(&engine, 0..COUNT).await;
    let worker = join(&engine);
    for _ in 0..COUNT / 1000 {
        let claimed = worker.claim(1000).await;
        assert_eq!(claimed.len(), 1000);
        let (even, odd): (Vec<_>, Vec<_>) =
            claimed.into_iter().partition(|claimed| number(claimed).is_multiple_of(2));
        let later = |Claimed { message, .. }| {
            let verdict = Verdict::PutAside { until: UnixMs::now().plus(LONG), failed: false };
            Settlement { message, verdict }
        };
        worker.settle(even.iter().map(done).chain(odd.into_iter().map(later)).collect()).await;
    }
    engine.control().cancel(&crawl()).await.unwrap();
    let next = CrawlRef { id: "c2".parse().unwrap(), ..crawl() };
    let session = open_crawl(&engine, next).await;
    let pages: Vec<NewWork> = (0..COUNT).map(page).collect();
    let new = session.admit(&pages).await.unwrap();
    assert!(new.iter().enumerate().all(|(number, new)| *new == (number % 2 == 1)));
}

/// A state file that refuses some changes as long as this lives, as it does where its disk is full.
struct Refusal {
    file: rusqlite::Connection,
    count: usize,
}

impl Refusal {
    /// Refuses `changes`, such as `INSERT ON records`. What the transaction did before is then undone, by SQLite at once or by
    /// whoever asks.
    fn of(changes: &[&str], undoes_at_once: bool, path: &Path) -> Self {
        let file = rusqlite::Connection::open(path).unwrap();
        let how = if undoes_at_once { "ROLLBACK" } else { "ABORT" };
        for (number, change) in changes.iter().enumerate() {
            let refusal = format!("SELECT RAISE({how}, 'the disk is full')");
            let sql = format!("CREATE TRIGGER refusal_{number} BEFORE {change} BEGIN {refusal}; END");
            file.execute_batch(&sql).unwrap();
        }
        Self { file, count: changes.len() }
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        for number in 0..self.count {
            self.file.execute_batch(&format!("DROP TRIGGER refusal_{number}")).unwrap();
        }
    }
}

/// Waits for what must come.
async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(30), waiting).await.unwrap();
}

#[tokio::test]
async fn discovery_of_a_session_that_is_gone_ends_although_the_file_refuses_that_at_first() {
    let (directory, engine) = state_file();
    let health = Arc::new(Health::default());
    let Joined { frontier: _frontier, maintenance } =
        join_with(&engine, Arc::clone(&health), Duration::from_millis(12));
    let opening =
        Opening { crawl: crawl(), terms: Terms::default(), text: None, is_new: true, lease: Duration::ZERO };
    drop(engine.engine().open(opening, Arc::default()).await.unwrap());
    let refusal = Refusal::of(&["UPDATE OF discovered ON crawls"], false, &directory.path().join("crawl.db"));
    let _maintenance = JoinSet::from_iter([maintenance]);
    eventually(async || health.trouble().is_some()).await;
    drop(refusal);
    let status = async || engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap().status;
    eventually(async || status().await == CrawlState::Finished).await;
}

#[tokio::test]
async fn a_url_whose_end_the_file_refuses_stays_in_hand_and_ends_when_it_can() {
    for undoes_at_once in [false, true] {
        let (directory, engine) = state_file();
        let _session = admit(&engine, 0..1).await;
        let health = Arc::new(Health::default());
        let Joined { frontier, .. } = join_with(&engine, Arc::clone(&health), LONG);
        let claimed = frontier.claim(1).await.remove(0);
        assert_eq!(frontier.start(&[Claim::of(&claimed.message)]).await.unwrap(), [Start::Go]);
        let refusal = Refusal::of(&["DELETE ON records"], undoes_at_once, &directory.path().join("crawl.db"));
        let settling = frontier.settle(vec![done(&claimed)]);
        let meanwhile = async {
            eventually(async || health.trouble().is_some()).await;
            assert_eq!(frontier.activity().in_flight, 1);
            assert_eq!(available(&engine).await, [] as [usize; 0], "nobody else gets it");
            drop(refusal);
        };
        let (settled, ()) = tokio::join!(settling, meanwhile);
        assert_eq!((settled.ended.len(), frontier.activity().in_flight), (1, 0));
    }
}

/// A request for a slot of a host that may be asked at any time.
fn ask(host: &str) -> HostSlotRequest {
    let (pace, standing) = (Pace::UNLIMITED, Standing::New);
    let request = SlotRequest { pace, held: None, standing, deadline: None, token: 0, lapse: LONG };
    HostSlotRequest { key: HostKey::from_text(host), request }
}

/// Changes a state file that an engine has open, as another program may.
fn change(directory: &TempDir, sql: &str) {
    let file = rusqlite::Connection::open(directory.path().join("crawl.db")).unwrap();
    assert_ne!(file.execute(sql, []).unwrap(), 0, "{sql}");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_a_dead_letter_that_names_its_field_and_its_crawl_goes_on() {
    let fields = [
        ("lane", "'express'"),
        ("due", "-5"),
        ("deadline", "-9"),
        ("starts", "5000000000"),
        ("attempts", "-1"),
        ("depth", "70000"),
        ("refusals", "-1"),
        ("hop", "'no URL'"),
        ("referrer", "'no URL'"),
    ];
    for (field, held) in fields {
        let (directory, engine) = state_file();
        let session = admit(&engine, 0..3).await;
        change(&directory, &format!("UPDATE records SET {field} = {held} WHERE url LIKE '%/1'"));
        let worker = join(&engine);
        let claimed = claim_all(&*worker).await;
        assert_eq!(claimed.iter().map(number).collect::<Vec<_>>(), [0, 2], "{field}");
        worker.settle(claimed.iter().map(done).collect()).await;
        let listed = engine.control().failed(&crawl(), 0).await.unwrap().failed;
        let [(url, note)] = &listed[..] else { panic!("{field}: {listed:?}") };
        assert_eq!((url, note.cause.reason), (&page(1).work.key(), Reason::Corrupt));
        let held = held.trim_matches('\'');
        let message = format!("the field {field} of record http://site.example/1 holds `{held}`");
        assert!(note.cause.error.contains(&message), "{}", note.cause.error);
        let stats = async || engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
        assert_eq!(stats().await.reasons, [("failed:corrupt".to_owned(), 1)].into());

        assert_eq!(engine.engine().replay(&crawl(), &crawl(), &[page(1).work.key()]).await.unwrap(), 1);
        assert_eq!(stats().await.reasons, [].into());
        session.close().await.unwrap();
        let again = worker.claim(9).await;
        assert_eq!(worker.settle(again.iter().map(done).collect()).await.ended.len(), 1, "as new");
        assert_eq!((stats().await.status, stats().await.counts.done), (CrawlState::Finished, 3));
    }
}

#[tokio::test]
async fn a_record_of_no_url_is_listed_with_such_texts_and_its_crawl_ends() {
    let (directory, engine) = state_file();
    let session = admit(&engine, 0..2).await;
    session.close().await.unwrap();
    change(&directory, "UPDATE records SET url = 'no URL' WHERE url LIKE '%/1'");
    let worker = join(&engine);
    let claimed = claim_all(&*worker).await;
    worker.settle(claimed.iter().map(done).collect()).await;
    let listed = engine.control().invalid(&crawl()).await.unwrap();
    let [(text, note)] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((&**text, note.cause.reason), ("no URL", Reason::Corrupt));
    let stats = engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
    assert_eq!((stats.status, stats.counts.done, stats.counts.failed), (CrawlState::Finished, 1, 1));
}

#[tokio::test]
async fn a_crawl_that_cannot_be_read_stands_still_alone_until_it_is_set_right() {
    for (field, held, right) in
        [("status", "'walking'", "'running'"), ("max_pages", "0", "NULL"), ("idle", "-1", "0")]
    {
        let (directory, engine) = state_file();
        let session = admit(&engine, 0..2).await;
        let other = CrawlRef { id: "c2".parse().unwrap(), spider: "s2".parse().unwrap() };
        let of_other = open_crawl(&engine, other).await;
        of_other.admit(&[page(7)]).await.unwrap();
        change(&directory, &format!("UPDATE crawls SET {field} = {held} WHERE id = 'c1'"));
        let refused = session.admit(&[page(2)]).await.unwrap_err();
        let message = format!("the field {field} of crawl c1 holds `{}`", held.trim_matches('\''));
        assert_eq!(refused.kind, ErrorKind::Corrupt);
        assert!(refused.to_string().contains(&message), "{refused}");
        assert_eq!(available(&engine).await, [7], "{field}");
        drop((session, of_other, engine));
        change(&directory, &format!("UPDATE crawls SET {field} = {right} WHERE id = 'c1'"));
        assert_eq!(available(&open(&directory.path().join("crawl.db"))).await, [0, 1, 7]);
    }
}

#[tokio::test]
async fn stats_that_cannot_be_read_are_an_error_and_those_of_other_crawls_are_listed() {
    let (directory, engine) = state_file();
    let _session = admit(&engine, 0..2).await;
    let other = CrawlRef { id: "c2".parse().unwrap(), spider: "s2".parse().unwrap() };
    let _of_other = open_crawl(&engine, other.clone()).await;
    change(&directory, "UPDATE crawls SET bytes = -1 WHERE id = 'c1'");
    let refused = engine.stats().crawl_stats(&crawl().id).await.unwrap_err();
    assert!(refused.to_string().contains("the field bytes of crawl c1 holds `-1`"), "{refused}");
    let listed = engine.stats().crawls().await.unwrap();
    assert_eq!(listed.iter().map(|stats| &stats.crawl).collect::<Vec<_>>(), [&other.id]);
    change(&directory, "UPDATE crawl_hosts SET admitted = -2");
    let refused = engine.stats().hosts(&crawl(), 9).await.unwrap_err();
    assert!(refused.to_string().contains("the field admitted of host site.example holds `-2`"), "{refused}");
}

#[tokio::test]
async fn a_host_that_cannot_be_read_is_left_alone_and_no_other_is() {
    let (directory, engine) = state_file();
    drop(engine);
    change(&directory, "INSERT INTO hosts VALUES ('odd.example', 1, -5, 0, 503, NULL)");
    let engine = open(&directory.path().join("crawl.db"));
    let slots = engine.hosts().reserve(&[ask("odd.example"), ask("site.example")]).await.unwrap();
    assert!(matches!(slots[..], [Slot::Later { .. }, Slot::Now]), "{slots:?}");
    let refused = engine.host_control().unblock(&HostKey::from_text("odd.example")).await.unwrap_err();
    assert!(refused.to_string().contains("the field until of host odd.example holds `-5`"), "{refused}");
}

#[tokio::test]
async fn a_back_off_that_is_over_keeps_nobody_from_looking_into_the_file() {
    let (directory, engine) = state_file();
    change(&directory, "INSERT INTO hosts VALUES ('slow.example', 1, 2, 0, 503, NULL)");
    let watching = Embedded::watch(&directory.path().join("crawl.db")).unwrap();
    assert_eq!(watching.host_control().hosts().await.unwrap(), []);
    drop(engine);
}

#[tokio::test]
async fn a_note_that_cannot_be_read_is_listed_with_its_text() {
    let (directory, engine) = state_file();
    let _session = admit(&engine, 0..1).await;
    change(
        &directory,
        r#"INSERT INTO failed (crawl, url, terminal, note) VALUES (1, 'http://site.example/9', 'failed', '{"half')"#,
    );
    let listed = engine.control().failed(&crawl(), 0).await.unwrap().failed;
    let [(url, note)] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((url, note.cause.reason), (&page(9).work.key(), Reason::Corrupt));
    assert!(note.cause.error.ends_with(r#": {"half"#), "{}", note.cause.error);
}

#[tokio::test]
async fn a_state_file_belongs_to_one_process_at_a_time() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    let refused = Embedded::open(&path).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Busy);
    assert!(refused.to_string().contains("crawl.db is in use by another trawl process"), "{refused}");
    drop(admit(&engine, 0..2).await);
    drop(engine);
    let log = directory.path().join("crawl.db-wal");
    assert!(!log.exists(), "a clean end leaves one file");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(available(&open(&path)).await, [0, 1]);
}

#[tokio::test]
async fn others_may_look_into_a_state_file_while_its_process_works_but_change_nothing() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    drop(admit(&engine, 0..2).await);
    let watching = Embedded::watch(&path).unwrap();
    let admitted = async || watching.stats().crawl_stats(&crawl().id).await.unwrap().unwrap().counts.admitted;
    assert_eq!(admitted().await, 2);
    assert!(watching.control().pause(&crawl()).await.is_err());
    drop(admit(&engine, 2..3).await);
    assert_eq!(admitted().await, 3);
    drop(watching);
    assert_eq!(available(&engine).await, [0, 1, 2]);
}

#[test]
fn a_state_file_is_for_its_owners_eyes_only() {
    let (directory, engine) = state_file();
    let modes = std::fs::read_dir(directory.path()).unwrap().map(|file| {
        let file = file.unwrap();
        (file.file_name(), file.metadata().unwrap().permissions().mode() & 0o777)
    });
    for (file, mode) in modes {
        assert_eq!(mode, 0o600, "{file:?}");
    }
    drop(engine);
}

#[tokio::test]
async fn the_time_in_which_no_process_had_the_file_is_no_time_of_the_crawl() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    drop(admit(&engine, 0..1).await);
    drop(engine);
    // It worked for a minute, an hour ago.
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch("UPDATE crawls SET started = touched - 3660000, touched = touched - 3600000").unwrap();
    drop(file);
    let seconds =
        async |engine: &Embedded| engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap().seconds;
    assert_eq!(seconds(&Embedded::watch(&path).unwrap()).await, 60.0);
    let engine = open(&path);
    let resumed = seconds(&engine).await;
    assert!((60.0..90.0).contains(&resumed), "{resumed}");
    engine.control().cancel(&crawl()).await.unwrap();
    let ended = seconds(&engine).await;
    assert!((resumed..90.0).contains(&ended), "{ended}");
}

#[tokio::test]
async fn a_file_of_another_program_or_of_a_newer_one_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.db");
    let refusal = |path: &Path| {
        let refused = Embedded::open(path).err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Refused, "{refused}");
        refused.to_string()
    };
    std::fs::write(&path, "a text that is long enough to be no header of SQLite".repeat(99)).unwrap();
    assert!(refusal(&path).ends_with("crawl.db is not a state file of trawl"));
    std::fs::remove_file(&path).unwrap();
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign.execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    drop(foreign);
    assert!(refusal(&path).ends_with("crawl.db is not a state file of trawl"));
    std::fs::remove_file(&path).unwrap();
    drop(open(&path));
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let reported = refusal(&path);
    assert!(reported.ends_with("crawl.db has schema version 99, and this program knows 11"), "{reported}");
}

#[tokio::test]
async fn what_hosts_and_people_said_outlasts_the_process() {
    let (directory, engine) = state_file();
    let key = |name: &str| HostKey::from_text(name);
    let refusal = BackoffRequest {
        status: 503,
        crawl: None,
        terms: BackoffTerms {
            asked: Some(Duration::from_secs(3_600)),
            base: LONG,
            jitter: 0.0,
            most: 10 * LONG,
        },
    };
    let until = engine.hosts().push_back(&key("slow.example"), &refusal).await.unwrap();
    engine.host_control().block(&key("blocked.example")).await.unwrap();
    drop(engine);
    let engine = Embedded::open(&directory.path().join("crawl.db")).unwrap();
    let host = engine.host_control().host(&key("slow.example")).await.unwrap().unwrap();
    assert_eq!(
        host.backoff.map(|backoff| (backoff.until, backoff.status, backoff.strikes)),
        Some((until, 503, 0))
    );
    let slots = engine.hosts().reserve(&[ask("slow.example"), ask("blocked.example")]).await.unwrap();
    assert!(matches!(slots[..], [Slot::Later { .. }, Slot::Blocked]), "{slots:?}");
    assert!(engine.host_control().unblock(&key("blocked.example")).await.unwrap());
    drop(engine);
    let engine = Embedded::open(&directory.path().join("crawl.db")).unwrap();
    assert_eq!(engine.hosts().reserve(&[ask("blocked.example")]).await.unwrap(), [Slot::Now]);
}

#[tokio::test]
async fn a_file_of_version_1_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("state-v1.sql")).unwrap();
    for (record, number) in [(1, 0), (2, 1), (3, 2)] {
        let key = Fingerprint::of(&format!("s1\n{}", page(number).work));
        old.execute("INSERT INTO fresh (url, record) VALUES (?1, ?2)", (key.0, record)).unwrap();
    }
    drop(old);
    for _ in 0..2 {
        let engine = open(&path);
        assert_eq!(available(&engine).await, [2]);
        let note = engine.control().failure(&crawl(), &page(1).work.key()).await.unwrap().unwrap();
        assert_eq!((note.cause.reason, note.cause.class), (Reason::Retries, Some(Class::Http)));
        assert_eq!(
            (note.cause.status, note.cause.worker, note.lane),
            (Some(503), Some(worker()), Lane::Bulk)
        );
        assert_eq!(engine.control().failed(&crawl(), 0).await.unwrap().failed.len(), 1);
        assert_eq!(engine.pages().walk(&crawl().spider, 0).await.unwrap(), Walk::default());
    }
    let engine = open(&path);
    let session = open_crawl(&engine, crawl()).await;
    let pages: Vec<NewWork> = (0..4).map(page).collect();
    assert_eq!(session.admit(&pages).await.unwrap(), [false, false, false, true]);
    assert_eq!(engine.engine().replay(&crawl(), &crawl(), &[page(1).work.key()]).await.unwrap(), 1);
    let stats = engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
    assert_eq!((stats.counts.admitted, stats.counts.done, stats.pending), (4, 1, 3));
}

#[test]
fn a_path_that_cannot_be_a_file_is_an_error_that_names_it() {
    let reported = Embedded::open(Path::new("/nonexistent/crawl.db")).err().unwrap().to_string();
    assert!(reported.starts_with("/nonexistent/crawl.db cannot be opened"), "{reported}");
}

#[tokio::test]
async fn what_was_seen_stays_seen_beyond_memory_and_restarts() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    const COUNT: usize = 70_000;
    let pages: Vec<NewWork> = (0..COUNT).map(page).collect();
    let session = admit(&engine, 0..COUNT).await;
    let known = session.admit(&pages).await.unwrap();
    assert!(known.iter().all(|new| !new));
    drop((session, engine));

    let engine = open(&path);
    let session = admit(&engine, 0..COUNT).await;
    let worker = join(&engine);
    let claimed = worker.claim(2).await;
    for _ in 0..2 {
        assert_eq!(worker.settle(claimed.iter().map(done).collect()).await.ended.len(), 2);
    }
    session.close().await.unwrap();
    drop(worker);
    let stats = engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
    assert_eq!((stats.counts.admitted, stats.counts.done), (COUNT as u64, 2));
    drop(engine);

    let file = rusqlite::Connection::open(&path).unwrap();
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as u64;
    assert_eq!(count("SELECT count(*) FROM records"), stats.pending);
    assert!(count("SELECT count(*) FROM seen") > 0, "the index is in use");
    assert_eq!(count("SELECT (SELECT count(*) FROM seen) + (SELECT count(*) FROM fresh)"), COUNT as u64);
}

/// The process that the next test kills. It holds two URLs, one of them started, and has finished a third.
#[tokio::test]
#[ignore = "run by a_killed_process_loses_nothing"]
async fn a_process_to_kill() {
    let Some(path) = std::env::var_os("TRAWL_TEST_STATE") else { return };
    let engine = open(Path::new(&path));
    let _session = admit(&engine, 0..100).await;
    let worker = join(&engine);
    let claimed = worker.claim(3).await;
    worker.start(&[Claim::of(&claimed[1].message)]).await.unwrap();
    worker.settle(vec![done(&claimed[2])]).await;
    eprintln!("ready to die");
    std::thread::sleep(LONG);
}

#[tokio::test]
async fn a_killed_process_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_to_kill", "--ignored", "--nocapture"])
        .env("TRAWL_TEST_STATE", &path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready to die"));
    assert_eq!(Embedded::open(&path).err().unwrap().kind, ErrorKind::Busy);
    child.kill().unwrap();
    child.wait().unwrap();

    let engine = open(&path);
    let stats = engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
    assert_eq!((stats.counts.admitted, stats.counts.done, stats.pending), (100, 1, 99));
    let left: Vec<usize> = (0..100).filter(|number| *number != 2).collect();
    assert_eq!(available(&engine).await, left);
    for (starts, expected) in [(1, Start::Go), (2, Start::Go), (3, Start::Poison)] {
        let worker = join(&engine);
        let claimed = worker.claim(2).await;
        let suspect = claimed.iter().find(|claimed| number(claimed) == 1).unwrap();
        assert_eq!(suspect.starts, starts);
        assert_eq!(worker.start(&[Claim::of(&suspect.message)]).await.unwrap(), [expected]);
    }
    let session = admit(&engine, 0..101).await;
    session.close().await.unwrap();
    let stats = engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
    assert_eq!((stats.counts.admitted, stats.status), (101, CrawlState::Running));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_calls_makes_the_stats_disagree(steps in steps()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("crawl.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let connect = async || Embedded::open(&path).map(|engine| carrier_of(&engine));
        runtime.block_on(obeys_the_model(connect, |_| None::<()>, &steps)).unwrap();
    }
}

/// Changes that a state file may refuse.
const CHANGES: [&str; 10] = [
    "UPDATE OF discovered ON crawls",
    "UPDATE OF status ON crawls",
    "UPDATE OF done ON crawls",
    "INSERT ON records",
    "UPDATE ON records",
    "DELETE ON records",
    "INSERT ON fresh",
    "INSERT ON gone",
    "INSERT ON failed",
    "INSERT ON crawl_hosts",
];

proptest! {
    // A refusal costs a pause.
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_change_that_the_file_refuses_has_changed_nothing(
        steps in steps(),
        refusals in btree_map(0..60_usize, (subsequence(&CHANGES[..], 1..6), any::<bool>()), 4..16),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("crawl.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let connect = async || Embedded::open(&path).map(|engine| carrier_of(&engine));
        let fault = |number| {
            let (changes, undoes_at_once) = refusals.get(&number)?;
            Some(Refusal::of(changes, *undoes_at_once, &path))
        };
        runtime.block_on(obeys_the_model(connect, fault, &steps)).unwrap();
    }
}
