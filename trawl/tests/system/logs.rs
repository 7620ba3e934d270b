//! The log, end to end: real workers write it, and `trawl logs` reads and follows it.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

/// Returns the log entries selected by these arguments.
async fn entries(fleet: &Fleet, words: &[&str]) -> Vec<Value> {
    let read = fleet.command(&[&["logs", "--json"], words].concat()).output().await.unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let text = String::from_utf8(read.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn messages(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["message"].as_str().unwrap()).collect()
}

/// A process that follows the log.
struct Follower {
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Follower {
    fn new(fleet: &Fleet, words: &[&str]) -> Self {
        let mut command = fleet.command(&[&["logs", "--follow", "--json"], words].concat());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { lines, _process: process }
    }

    /// Returns the next entry whose message contains this text.
    async fn until(&mut self, text: &str) -> Value {
        loop {
            let line = timeout(LIMIT, self.lines.next_line()).await.unwrap().unwrap().unwrap();
            let entry: Value = serde_json::from_str(&line).unwrap();
            if entry["message"].as_str().unwrap().contains(text) {
                return entry;
            }
        }
    }
}

#[tokio::test]
async fn what_fails_in_a_fleet_is_in_its_log_for_all_who_read_and_follow_it() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let (mut one, mut two) = (Follower::new(&fleet, &[]), Follower::new(&fleet, &["--level", "error"]));
    let worker = fleet.worker(&[("TRAWL__RETRY__BACKOFF", "100ms"), ("TRAWL__RETRY__MAX", "1")]);
    let list = format!("{}\n{}/broken\n", site.page(0), site.origin);
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let produced = timeout(LIMIT, fleet.producer("list.txt").output()).await.unwrap().unwrap();
    assert_eq!(produced.status.code(), Some(3));

    let broken = format!("{}/broken", site.origin);
    one.until("the worker has started").await;
    for follower in [&mut one, &mut two] {
        let entry = follower.until("dead letter").await;
        for (name, value) in [
            ("level", "error"),
            ("class", "http"),
            ("host", "127.0.0.1"),
            ("key", &*broken),
            ("crawl", &*fleet.name),
            ("spider", &*fleet.name),
        ] {
            assert_eq!(entry[name], value, "{entry}");
        }
        assert!(entry["message"].as_str().unwrap().contains("retries, attempts 2"), "{entry}");
    }
    ends_well(worker).await;
    one.until("the worker has ended: 1 pages done, 1 failed").await;

    assert_eq!(fleet.items().await.len(), 1);
    let retried = entries(&fleet, &["--task", &broken]).await;
    assert!(messages(&retried)[0].starts_with("retry 1/1 at "), "{retried:?}");
    assert_eq!((retried.len(), &retried[0]["level"]), (2, &"debug".into()));
    assert_eq!(
        entries(&fleet, &["--crawl", &fleet.name, "--level", "error", "--since", "1h"]).await.len(),
        1
    );
    assert_eq!(
        messages(&entries(&fleet, &["--limit", "1"]).await)[0],
        "the worker has ended: 1 pages done, 1 failed"
    );
    assert!(entries(&fleet, &["--host", "other.example"]).await.is_empty());
}

#[tokio::test]
async fn the_log_of_a_crawl_in_one_process_is_in_its_state_file() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let list = format!("{}\n{}\n", site.page(0), site.page(1));
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let crawled = fleet.command(&["crawl", "list.txt", "--state", "crawl.db", "-q"]).output().await.unwrap();
    assert_eq!(crawled.status.code(), Some(3), "{}", String::from_utf8_lossy(&crawled.stderr));
    let failed = entries(&fleet, &["--state", "crawl.db", "--level", "error", "--crawl", "latest"]).await;
    assert_eq!((failed.len(), failed[0]["key"].as_str()), (1, Some(&*site.page(1))));
    let shown = fleet.command(&["logs", "--state", "crawl.db", "--color", "always"]).output().await.unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("\u{1b}[31merror\u{1b}[0m dead letter, final, attempts 1: "), "{shown}");
    let piped = fleet.command(&["logs", "--state", "crawl.db"]).output().await.unwrap();
    assert!(!String::from_utf8(piped.stdout).unwrap().contains('\u{1b}'));
}

#[tokio::test]
async fn a_follower_and_the_writers_go_on_when_redis_comes_back_empty() {
    let fleet = Fleet::new().await;
    let mut follower = Follower::new(&fleet, &[]);
    let first = fleet.worker(&[]);
    follower.until("the worker has started").await;
    let client = redis::Client::open(fleet.redis.reveal()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let _: () = redis::cmd("FLUSHDB").query_async(&mut connection).await.unwrap();
    ends_well(first).await;
    let entry = follower.until("the worker has ended").await;
    assert_eq!(
        messages(&entries(&fleet, &["--level", "info", "--limit", "1"]).await),
        [entry["message"].as_str().unwrap()]
    );
}
