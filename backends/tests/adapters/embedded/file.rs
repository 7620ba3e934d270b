//! Whose a state file is, what may be opened as one, and what outlasts the process.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use super::support::*;
use trawl_backends::embedded::Embedded;
use trawl_common::politeness::gcra::{BackoffTerms, Slot};
use trawl_common::ports::{BackoffRequest, ErrorKind, NewWork};
use trawl_common::web::host::HostKey;

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
    assert_eq!(available(&open(&path), 2).await, [0, 1]);
}

/// Background work may end later than the crawl does.
#[tokio::test]
async fn a_state_file_that_is_closed_is_one_file_whoever_still_has_its_adapters() {
    let (directory, engine) = state_file();
    let path = directory.path().join("crawl.db");
    let (stats, watching) = (engine.stats(), Embedded::watch(&path).unwrap());
    drop(admit(&engine, 0..2).await);
    assert_eq!(watching.stats().crawls().await.unwrap().len(), 1);
    engine.close().await;
    engine.close().await;
    assert!(stats.crawls().await.is_err());
    let copy = directory.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    assert_eq!(available(&open(&copy), 2).await, [0, 1]);
    drop(watching);
    assert_eq!(available(&open(&path), 2).await, [0, 1]);
}

#[test]
fn a_state_file_is_one_by_whatever_name() {
    let (directory, engine) = state_file();
    let at = |name: &str| directory.path().join(name);
    std::os::unix::fs::symlink("crawl.db", at("link.db")).unwrap();
    std::fs::hard_link(at("crawl.db"), at("hard.db")).unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    for name in ["crawl.db", "link.db", "hard.db", "folder/../crawl.db"] {
        let refused = Embedded::open(&at(name)).err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Busy, "{name}: {refused}");
    }
    assert!(!at("hard.db-lock").exists());
    drop(engine);
    // What a killed process had written is beside the name that it knew.
    for name in ["crawl.db", "hard.db"] {
        let refused = Embedded::open(&at(name)).err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Refused);
        assert!(refused.to_string().contains("has another name, as a hard link"), "{refused}");
    }
    std::fs::remove_file(at("hard.db")).unwrap();
    drop(open(&at("link.db")));
    drop(open(&at("crawl.db")));
    assert!(at("link.db").is_symlink());
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
    assert_eq!(available(&engine, 3).await, [0, 1, 2]);
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
    assert!(reported.contains("crawl.db has schema version 99, and this program knows 20"), "{reported}");
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
    let claimed = worker.claim(2).await.unwrap();
    for _ in 0..2 {
        assert_eq!(worker.settle(claimed.iter().map(done).collect()).await.unwrap().ended.len(), 2);
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
