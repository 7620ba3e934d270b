//! `trawl items`, with a real stream filled by real workers.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

/// Crawls the pages with these numbers.
async fn crawl(fleet: &Fleet, site: &Site, pages: std::ops::Range<usize>) {
    let worker = fleet.worker(&[]);
    let list: String = pages.map(|number| site.page(number) + "\n").collect();
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let spider = format!("--spider={}", fleet.name);
    let produced = fleet.command(&["producer", "list.txt", &spider, "--wait", "-q"]).output();
    assert_eq!(timeout(LIMIT, produced).await.unwrap().unwrap().status.code(), Some(0));
    ends_well(worker).await;
}

/// Returns the lines that `trawl items` prints with these arguments.
async fn lines(fleet: &Fleet, words: &[&str]) -> Vec<String> {
    let words: Vec<&str> = ["items", "-q"].iter().chain(words).copied().collect();
    let read = timeout(LIMIT, fleet.command(&words).output()).await.unwrap().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    String::from_utf8(read.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn each_reader_goes_on_from_its_own_position() {
    let fleet = Fleet::new().await;
    let site = Site::serve(50).await;
    assert_eq!(lines(&fleet, &["--reader", "late", "--from", "next"]).await, [""; 0]);
    crawl(&fleet, &site, 0..30).await;
    assert_eq!(lines(&fleet, &["--reader", "a", "--limit", "10"]).await.len(), 10);
    assert_eq!(lines(&fleet, &["--reader", "a"]).await.len(), 20);
    crawl(&fleet, &site, 30..50).await;
    for (words, count) in [
        (&["--reader", "a"][..], 20),
        (&["--reader", "a"], 0),
        (&["--reader", "late"], 50),
        (&[], 50),
        (&["--from", "next"], 0),
        (&["--from", "1000"], 0),
        (&["--from", "2030-01-01T00:00:00Z"], 0),
        (&["--from", "2020-01-01T00:00:00Z", "--spider", &fleet.name], 50),
        (&["--spider", "other"], 0),
    ] {
        assert_eq!(lines(&fleet, words).await.len(), count, "{words:?}");
    }
    let unknown = fleet.command(&["items", "--crawl", "other"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(unknown.status.code() == Some(2) && said.contains("no crawl other"), "{said}");
}

#[tokio::test]
async fn items_are_csv_with_a_line_of_headings() {
    let fleet = Fleet::new().await;
    let site = Site::serve(3).await;
    crawl(&fleet, &site, 0..3).await;
    let lines = lines(&fleet, &["--format", "csv", "--fields", "url,title"]).await;
    assert_eq!((lines.len(), &lines[0][..]), (4, "url,title"));
    assert!(lines[1].starts_with(&site.origin), "{lines:?}");
}

#[tokio::test]
async fn a_follower_prints_new_items_and_ends_quietly_when_its_pipe_is_closed() {
    let fleet = Fleet::new().await;
    let site = Site::serve(40).await;
    let mut following = fleet.command(&["items", "--follow", "-q"]);
    let mut following = following.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(following.stdout.take().unwrap()).lines();
    crawl(&fleet, &site, 0..20).await;
    for _ in 0..20 {
        let line = timeout(LIMIT, printed.next_line()).await.unwrap().unwrap().unwrap();
        let item: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(item["spider"], fleet.name);
    }
    drop(printed);
    crawl(&fleet, &site, 20..40).await;
    let ended = timeout(LIMIT, following.wait_with_output()).await.unwrap().unwrap();
    assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
}
