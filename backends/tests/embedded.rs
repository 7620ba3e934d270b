//! The embedded engine keeps every promise of its ports, and those of its file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;
use tokio::time::timeout;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::{Class, Reason, Terminal};
use trawl_common::frontier::{Heard, Start};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::politeness::gcra::{BackoffTerms, Pace, Slot, SlotRequest, Standing};
use trawl_common::ports::{
    BackoffRequest, Cache, Claim, ErrorKind, Finish, HostSlotRequest, NewUrl, Pages, Terms, Walk,
};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};
use trawl_engine::{Content, Delivery, Lease, Parking, Records};
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::conformance::control::Helm;
use trawl_testkit::conformance::hosts::{Doors, Frugal};
use trawl_testkit::conformance::queue::Engine;
use trawl_testkit::conformance::random::{AfterCrash, obeys_the_model, steps};

const LONG: Duration = Duration::from_secs(600);
const BRIEF: Duration = Duration::from_millis(200);

fn open(path: &Path) -> Embedded {
    Embedded::open(path, LONG).unwrap()
}

fn state_file() -> (TempDir, Embedded) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory.path().join("crawl.db"));
    (directory, engine)
}

fn brief_state_file() -> (TempDir, Embedded) {
    let directory = tempfile::tempdir().unwrap();
    let engine = Embedded::open(&directory.path().join("crawl.db"), BRIEF).unwrap();
    (directory, engine)
}

fn engine_of(engine: &Embedded) -> Engine {
    Engine { queue: engine.broker(), frontier: engine.records(), control: engine.control() }
}

fn helm_of(engine: &Embedded) -> Helm {
    Helm { frontier: engine.records(), control: engine.control() }
}

async fn frontier() -> (TempDir, Arc<dyn Records>) {
    let (directory, engine) = state_file();
    (directory, engine.records())
}

async fn brief_frontier() -> (TempDir, Arc<dyn Records>) {
    let (directory, engine) = brief_state_file();
    (directory, engine.records())
}

async fn helm() -> (TempDir, Helm) {
    let (directory, engine) = state_file();
    (directory, helm_of(&engine))
}

async fn brief_helm() -> (TempDir, Helm) {
    let (directory, engine) = brief_state_file();
    (directory, helm_of(&engine))
}

async fn engine() -> (TempDir, Engine) {
    let (directory, engine) = state_file();
    (directory, engine_of(&engine))
}

async fn brief_engine() -> (TempDir, Engine) {
    let (directory, engine) = brief_state_file();
    (directory, engine_of(&engine))
}

async fn frugal() -> (TempDir, Frugal) {
    let (directory, engine) = state_file();
    (directory, Frugal { hosts: engine.hosts(), robots_bytes: 32 << 20 })
}

async fn hosts() -> ((), Doors) {
    let engine = Embedded::in_memory(LONG).unwrap();
    ((), Doors { hosts: engine.hosts(), control: engine.host_control() })
}

async fn cache() -> ((), Arc<dyn Cache>) {
    ((), Embedded::in_memory(LONG).unwrap().cache())
}

async fn pages() -> (TempDir, Arc<dyn Pages>) {
    let (directory, engine) = state_file();
    (directory, engine.pages())
}

async fn carrier() -> (TempDir, Carrier) {
    let (directory, engine) = state_file();
    (directory, Carrier { engine: engine.engine(), stats: engine.stats(), control: engine.control() })
}

trawl_testkit::carrying_conformance!(carrier);
trawl_testkit::frontier_conformance!(frontier, brief_frontier);
trawl_testkit::control_conformance!(helm, brief_helm);
trawl_testkit::queue_conformance!(engine);
trawl_testkit::sweep_conformance!(brief_engine);
trawl_testkit::hosts_conformance!(hosts, frugal);
trawl_testkit::cache_conformance!(cache);
trawl_testkit::pages_conformance!(pages);

fn crawl() -> CrawlRef {
    CrawlRef { id: "c1".parse().unwrap(), spider: "s1".parse().unwrap() }
}

fn worker() -> WorkerId {
    "w1".parse().unwrap()
}

fn page(number: usize) -> NewUrl {
    let url = CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap();
    NewUrl::seed(url, Lane::Bulk)
}

fn claim(number: usize) -> Claim {
    Claim { crawl: crawl(), url: page(number).url }
}

async fn admit(engine: &Embedded, numbers: std::ops::Range<usize>) -> Lease {
    let lease = engine.records().open(&crawl(), Terms::default(), "producer", LONG).await.unwrap();
    let pages: Vec<NewUrl> = numbers.map(page).collect();
    engine.records().admit(&lease, &pages).await.unwrap();
    lease
}

async fn hear(engine: &Embedded, number: usize) -> Heard {
    engine.records().hear(&worker(), &[page(number).message(&crawl())]).await.unwrap()[0]
}

/// The page numbers of what is available now, in order.
async fn available(engine: &Embedded) -> Vec<usize> {
    let mut consumer = engine.broker().consume(1000).await.unwrap();
    let mut all = Vec::new();
    while let Ok(batch) = timeout(Duration::from_millis(50), consumer.next(1000)).await {
        all.extend(batch.unwrap().iter().map(number));
    }
    all
}

fn number(delivery: &Delivery) -> usize {
    let Content::Message(message) = &delivery.content else { panic!("no message: {delivery:?}") };
    message.url.as_str().rsplit('/').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn parked_urls_come_first_then_priority_then_bulk_each_in_order() {
    let (_directory, engine) = state_file();
    let lease = admit(&engine, 0..4).await;
    let urgent: Vec<_> = (4..6).map(|number| NewUrl { lane: Lane::Priority, ..page(number) }).collect();
    engine.records().admit(&lease, &urgent).await.unwrap();
    for (number, ago) in [(1, 5_000), (3, 9_000)] {
        hear(&engine, number).await;
        let until = UnixMs(UnixMs::now().0 - ago);
        let parking = Parking { claim: claim(number), until, failed: false };
        assert_eq!(engine.records().park(&worker(), &[parking]).await.unwrap(), [true]);
    }
    assert_eq!(available(&engine).await, [3, 1, 4, 5, 0, 2]);
}

#[tokio::test]
async fn what_a_consumer_had_is_available_when_it_is_gone() {
    let (_directory, engine) = state_file();
    admit(&engine, 0..3).await;
    assert_eq!(available(&engine).await, [0, 1, 2]);
    assert_eq!(available(&engine).await, [0, 1, 2]);
}

#[tokio::test]
async fn what_is_given_back_before_its_lane_was_walked_comes_once() {
    let (_directory, engine) = state_file();
    admit(&engine, 0..3).await;
    hear(&engine, 1).await;
    engine.records().release(&worker(), &[claim(1)]).await.unwrap();
    let mut all = available(&engine).await;
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2]);
}

#[tokio::test]
async fn a_paused_crawl_is_handed_out_after_it_and_others_meanwhile() {
    let (_directory, engine) = state_file();
    let lease = admit(&engine, 0..4).await;
    hear(&engine, 1).await;
    let until = UnixMs(UnixMs::now().0 - 5);
    let parking = Parking { claim: claim(1), until, failed: false };
    engine.records().park(&worker(), &[parking]).await.unwrap();
    engine.control().pause(&crawl()).await.unwrap();
    let other = CrawlRef { id: "c2".parse().unwrap(), spider: "s2".parse().unwrap() };
    let other_lease = engine.records().open(&other, Terms::default(), "producer", LONG).await.unwrap();
    engine.records().admit(&other_lease, &[page(7)]).await.unwrap();
    engine.records().admit(&lease, &[page(4)]).await.unwrap();
    assert_eq!(available(&engine).await, [7]);
    engine.control().resume(&crawl()).await.unwrap();
    assert_eq!(available(&engine).await, [1, 0, 2, 3, 7, 4]);
}

#[tokio::test]
async fn a_pause_does_not_move_the_deadline_of_what_is_admitted_after_it() {
    let (_directory, engine) = state_file();
    let lease = admit(&engine, 0..1).await;
    engine.control().pause(&crawl()).await.unwrap();
    let paused = UnixMs::now();
    while UnixMs::now().since(paused) < Duration::from_millis(20) {
        tokio::task::yield_now().await;
    }
    engine.control().resume(&crawl()).await.unwrap();
    let deadline = Some(UnixMs::now().plus(LONG));
    engine.records().admit(&lease, &[NewUrl { deadline, ..page(1) }]).await.unwrap();
    assert_eq!(hear(&engine, 1).await, Heard::Take { attempts: 0, starts: 0, deadline });
}

#[tokio::test]
async fn what_is_forgotten_is_forgotten_beyond_memory_and_the_rest_is_not() {
    let (_directory, engine) = state_file();
    const COUNT: usize = 70_000;
    let lease = admit(&engine, 0..COUNT).await;
    let done: Vec<Finish> =
        (0..COUNT).step_by(2).map(|number| Finish::new(claim(number), Terminal::Done)).collect();
    let taken: Vec<_> = (0..COUNT).step_by(2).map(|number| page(number).message(&crawl())).collect();
    engine.records().hear(&worker(), &taken).await.unwrap();
    engine.records().finish(&worker(), &done).await.unwrap();
    engine.control().cancel(&crawl()).await.unwrap();
    let next = CrawlRef { id: "c2".parse().unwrap(), ..crawl() };
    let next_lease = engine.records().open(&next, Terms::default(), "another", LONG).await.unwrap();
    assert_ne!(next_lease.token, lease.token, "a cancelled crawl has no sources left to read");
    let pages: Vec<NewUrl> = (0..COUNT).map(page).collect();
    let new = engine.records().admit(&next_lease, &pages).await.unwrap();
    assert!(new.iter().enumerate().all(|(number, new)| *new == (number % 2 == 1)));
}

#[tokio::test]
async fn a_state_file_belongs_to_one_process_at_a_time() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    let refused = Embedded::open(&path, LONG).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Busy);
    assert!(refused.to_string().contains("crawl.db is in use by another trawl process"), "{refused}");
    admit(&engine, 0..2).await;
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
    admit(&engine, 0..2).await;
    let watching = Embedded::watch(&path, LONG).unwrap();
    let admitted = async || watching.records().books(&crawl().id).await.unwrap().unwrap().counts.admitted;
    assert_eq!(admitted().await, 2);
    assert!(watching.control().pause(&crawl()).await.is_err());
    admit(&engine, 2..3).await;
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
    let lease = admit(&engine, 0..1).await;
    drop(engine);
    // It worked for a minute, an hour ago.
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch("UPDATE crawls SET started = touched - 3660000, touched = touched - 3600000").unwrap();
    drop(file);
    let seconds =
        async |engine: &Embedded| engine.records().books(&crawl().id).await.unwrap().unwrap().seconds;
    assert_eq!(seconds(&Embedded::watch(&path, LONG).unwrap()).await, 60.0);
    let engine = open(&path);
    let resumed = seconds(&engine).await;
    assert!((60.0..90.0).contains(&resumed), "{resumed}");
    engine.control().cancel(&lease.crawl).await.unwrap();
    let ended = seconds(&engine).await;
    assert!((resumed..90.0).contains(&ended), "{ended}");
}

#[tokio::test]
async fn a_file_of_another_program_or_of_a_newer_one_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.db");
    let refusal = |path: &Path| {
        let refused = Embedded::open(path, LONG).err().unwrap();
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
    let told = refusal(&path);
    assert!(told.ends_with("crawl.db has schema version 99, and this program knows 6"), "{told}");
}

#[tokio::test]
async fn what_hosts_and_people_said_outlasts_the_process() {
    let (directory, engine) = state_file();
    let key = |name: &str| HostKey::from_text(name);
    let refusal = BackoffRequest {
        status: 503,
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
    let engine = Embedded::open(&directory.path().join("crawl.db"), LONG).unwrap();
    let host = engine.host_control().host(&key("slow.example")).await.unwrap().unwrap();
    assert_eq!(
        host.backoff.map(|backoff| (backoff.until, backoff.status, backoff.strikes)),
        Some((until, 503, 0))
    );
    let request = SlotRequest {
        pace: Pace::UNLIMITED,
        held: None,
        standing: Standing::New,
        deadline: None,
        token: 0,
        lapse: LONG,
    };
    let ask = |name: &str| HostSlotRequest { key: key(name), request };
    let slots = engine.hosts().reserve(&[ask("slow.example"), ask("blocked.example")]).await.unwrap();
    assert!(matches!(slots[..], [Slot::Later { .. }, Slot::Blocked]), "{slots:?}");
    assert!(engine.host_control().unblock(&key("blocked.example")).await.unwrap());
    drop(engine);
    let engine = Embedded::open(&directory.path().join("crawl.db"), LONG).unwrap();
    assert_eq!(engine.hosts().reserve(&[ask("blocked.example")]).await.unwrap(), [Slot::Now]);
}

#[tokio::test]
async fn a_file_of_version_1_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("state-v1.sql")).unwrap();
    for (record, number) in [(1, 0), (2, 1), (3, 2)] {
        let key = Fingerprint::of(&format!("s1\n{}", page(number).url));
        old.execute("INSERT INTO fresh (url, record) VALUES (?1, ?2)", (key.0, record)).unwrap();
    }
    drop(old);
    for _ in 0..2 {
        let engine = open(&path);
        assert_eq!(available(&engine).await, [2]);
        let note = engine.control().failure(&crawl(), &page(1).url).await.unwrap().unwrap();
        assert_eq!((note.cause.reason, note.cause.class), (Reason::Retries, Some(Class::Http)));
        assert_eq!(
            (note.cause.status, note.cause.worker, note.lane),
            (Some(503), Some(worker()), Lane::Bulk)
        );
        assert_eq!(engine.control().failed(&crawl(), 0).await.unwrap().urls.len(), 1);
        assert_eq!(engine.pages().walk(&crawl().spider, 0).await.unwrap(), Walk::default());
    }
    let engine = open(&path);
    let lease = engine.records().open(&crawl(), Terms::default(), "producer", LONG).await.unwrap();
    let pages: Vec<NewUrl> = (0..4).map(page).collect();
    assert_eq!(engine.records().admit(&lease, &pages).await.unwrap(), [false, false, false, true]);
    assert_eq!(engine.records().replay(&crawl(), &crawl(), &[page(1).url]).await.unwrap().len(), 1);
    let books = engine.records().books(&crawl().id).await.unwrap().unwrap();
    assert_eq!((books.counts.admitted, books.counts.done, books.pending), (4, 1, 3));
}

#[test]
fn a_path_that_cannot_be_a_file_is_an_error_that_names_it() {
    let told = Embedded::open(Path::new("/nonexistent/crawl.db"), LONG).err().unwrap().to_string();
    assert!(told.starts_with("/nonexistent/crawl.db cannot be opened"), "{told}");
}

#[tokio::test]
async fn what_was_seen_stays_seen_beyond_memory_and_restarts() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    const COUNT: usize = 70_000;
    let pages: Vec<NewUrl> = (0..COUNT).map(page).collect();
    let lease = admit(&engine, 0..COUNT).await;
    let known = engine.records().admit(&lease, &pages).await.unwrap();
    assert!(known.iter().all(|new| !new));
    drop(engine);

    let engine = open(&path);
    let lease = admit(&engine, 0..COUNT).await;
    let done = |number| Finish::new(claim(number), Terminal::Done);
    let first_and_last = [done(0), done(COUNT - 1)];
    for number in [0, COUNT - 1] {
        hear(&engine, number).await;
    }
    for _ in 0..2 {
        assert_eq!(engine.records().finish(&worker(), &first_and_last).await.unwrap(), [true, true]);
    }
    engine.records().close(lease).await.unwrap();
    let books = engine.records().books(&crawl().id).await.unwrap().unwrap();
    assert_eq!((books.counts.admitted, books.counts.done), (COUNT as u64, 2));
    drop(engine);

    let file = rusqlite::Connection::open(&path).unwrap();
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as u64;
    assert_eq!(count("SELECT count(*) FROM records"), books.pending);
    assert!(count("SELECT count(*) FROM seen") > 0, "the index is in use");
    assert_eq!(count("SELECT (SELECT count(*) FROM seen) + (SELECT count(*) FROM fresh)"), COUNT as u64);
}

/// The process that the next test kills. It holds two URLs, one of them started, and has finished a third.
#[tokio::test]
#[ignore = "run by a_killed_process_loses_nothing"]
async fn a_process_to_kill() {
    let Some(path) = std::env::var_os("TRAWL_TEST_STATE") else { return };
    let engine = open(Path::new(&path));
    let _lease = admit(&engine, 0..100).await;
    for number in 0..3 {
        hear(&engine, number).await;
    }
    engine.records().start(&worker(), &[claim(1)]).await.unwrap();
    let finish = Finish::new(claim(2), Terminal::Done);
    engine.records().finish(&worker(), &[finish]).await.unwrap();
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
    assert_eq!(Embedded::open(&path, LONG).err().unwrap().kind, ErrorKind::Busy);
    child.kill().unwrap();
    child.wait().unwrap();

    let engine = open(&path);
    let books = engine.records().books(&crawl().id).await.unwrap().unwrap();
    assert_eq!((books.counts.admitted, books.counts.done, books.pending), (100, 1, 99));
    let left: Vec<usize> = (0..100).filter(|number| *number != 2).collect();
    assert_eq!(available(&engine).await, left);
    for expected in [Start::Go, Start::Go, Start::Poison] {
        hear(&engine, 1).await;
        assert_eq!(engine.records().start(&worker(), &[claim(1)]).await.unwrap(), [expected]);
    }
    let lease = admit(&engine, 0..101).await;
    engine.records().close(lease).await.unwrap();
    let books = engine.records().books(&crawl().id).await.unwrap().unwrap();
    assert_eq!((books.counts.admitted, books.status), (101, CrawlState::Running));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_calls_makes_the_books_disagree(steps in steps()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("crawl.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let connect = async || Embedded::open(&path, LONG).map(|engine| helm_of(&engine));
        runtime.block_on(obeys_the_model(connect, AfterCrash::Free, &steps)).unwrap();
    }
}
