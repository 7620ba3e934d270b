//! The state that a killed process leaves behind.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::*;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::ports::{Claim, ErrorKind};

/// The process that the next test kills. It holds two URLs, one of them started, and has finished a third.
#[tokio::test]
#[ignore = "run by a_killed_process_loses_nothing"]
async fn a_process_to_kill() {
    let Some(path) = std::env::var_os("TRAWL_TEST_STATE") else { return };
    let engine = open(Path::new(&path));
    let _session = admit(&engine, 0..100).await;
    let worker = join(&engine);
    let claimed = worker.claim(3).await.unwrap();
    worker.start(&[Claim::new(&claimed[1].message)]).await.unwrap();
    worker.settle(vec![done(&claimed[2])]).await.unwrap();
    eprintln!("ready to die");
    std::thread::sleep(LONG);
}

#[tokio::test]
async fn a_killed_process_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::killed::a_process_to_kill", "--ignored", "--nocapture"])
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
    assert_eq!(available(&engine, left.len()).await, left);
    for (starts, expected) in
        [(1, StartReply::Go), (2, StartReply::Go), (3, StartReply::Go), (4, StartReply::Poison)]
    {
        let worker = join(&engine);
        let claimed = worker.claim(2).await.unwrap();
        let suspect = claimed.iter().find(|claimed| number(claimed) == 1).unwrap();
        assert_eq!(suspect.starts, starts);
        assert_eq!(worker.start(&[Claim::new(&suspect.message)]).await.unwrap(), [expected]);
    }
    let session = admit(&engine, 0..101).await;
    session.close().await.unwrap();
    let stats = engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
    assert_eq!((stats.counts.admitted, stats.status), (101, CrawlState::Running));
}
