//! The history in PostgreSQL.

use serde_json::{Value, json};
use tokio_postgres::NoTls;
use trawl_backends::history::PostgresHistory;
use trawl_common::frontier::crawl::{Counts, CrawlState, CrawlStats};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::history::PageEnd;
use trawl_common::jobs::{Job, JobOutcome, NewJob};
use trawl_common::logs::{LogEntry, LogLevel};
use trawl_common::names::CrawlRef;
use trawl_common::ports::History;
use trawl_common::settings::ServerUrl;
use trawl_common::time::UnixMs;
use trawl_testkit::servers;

fn history() -> PostgresHistory {
    PostgresHistory::new(&servers::postgres()).unwrap()
}

/// A crawl whose rows belong to this test alone.
fn crawl() -> CrawlRef {
    CrawlRef {
        id: format!("test-{:016x}", rand::random::<u64>()).parse().unwrap(),
        spider: "docs".parse().unwrap(),
    }
}

/// Returns the rows of a crawl as JSON.
async fn rows(table: &str, column: &str, crawl: &CrawlRef) -> Vec<Value> {
    let url = servers::postgres();
    let (client, connection) = tokio_postgres::connect(url.reveal(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let query = format!("SELECT to_jsonb(t)::text FROM {table} t WHERE {column} = $1 ORDER BY id");
    let rows = client.query(&query, &[&crawl.id.as_str()]).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(row.get(0)).unwrap()).collect()
}

fn end(crawl: &CrawlRef, path: &str, ended: u64) -> PageEnd {
    PageEnd {
        crawl: crawl.clone(),
        key: format!("https://example.com/{path}").parse().unwrap(),
        terminal: Terminal::Done,
        reason: None,
        status: Some(200),
        attempts: 1,
        ended: UnixMs(ended),
        worker: "worker".parse().unwrap(),
        items: 2,
        bytes: 100,
    }
}

#[tokio::test]
async fn a_page_is_kept_once_and_as_it_ended_last() {
    let (history, crawl) = (history(), crawl());
    let failed = PageEnd {
        terminal: Terminal::Failed,
        reason: Some("timeout"),
        status: None,
        attempts: 3,
        ..end(&crawl, "a", 1_700_000_000_000)
    };
    history.keep_pages(&[failed.clone(), end(&crawl, "b", 1_700_000_000_000)]).await.unwrap();
    let kept = rows("trawl_pages", "crawl", &crawl).await;
    let row = kept.iter().find(|row| row["url"] == "https://example.com/a").unwrap();
    for (column, value) in [
        ("spider", json!("docs")),
        ("outcome", json!("failed")),
        ("reason", json!("timeout")),
        ("status", Value::Null),
        ("attempts", json!(3)),
        ("ended", json!("2023-11-14T22:13:20+00:00")),
        ("worker", json!("worker")),
    ] {
        assert_eq!(row[column], value, "{column}");
    }
    // The page was replayed and is done now. The late report of a worker that was stopped must not change that.
    history.keep_pages(&[end(&crawl, "a", 1_700_000_009_000)]).await.unwrap();
    history.keep_pages(&[failed]).await.unwrap();
    let kept = rows("trawl_pages", "crawl", &crawl).await;
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|row| row["outcome"] == "done" && row["items"] == 2), "{kept:?}");
}

#[tokio::test]
async fn the_longest_urls_of_a_batch_and_a_page_that_it_names_twice_are_kept() {
    let (history, crawl) = (history(), crawl());
    let ends: Vec<PageEnd> =
        (0..700).map(|number| end(&crawl, &format!("{number}/{}", "x".repeat(8_000)), 1)).collect();
    history.keep_pages(&ends).await.unwrap();
    history.keep_pages(&[end(&crawl, "a", 1), end(&crawl, "a", 1)]).await.unwrap();
    assert_eq!(rows("trawl_pages", "crawl", &crawl).await.len(), 701);
}

#[tokio::test]
async fn a_crawl_is_kept_as_it_stands_and_has_an_end_when_it_is_over() {
    let (history, crawl) = (history(), crawl());
    let began = UnixMs(1_700_000_000_000);
    let running = CrawlStats::empty(crawl.clone(), CrawlState::Running, began);
    history.keep_crawl(&running).await.unwrap();
    let kept = rows("trawl_crawls", "id", &crawl).await;
    assert_eq!((&kept[0]["status"], &kept[0]["ended"]), (&"running".into(), &Value::Null));
    let counts = Counts { admitted: 3, done: 2, failed: 1, ..Counts::default() };
    let finished = CrawlStats { status: CrawlState::Finished, counts, seconds: 5.0, ..running };
    history.keep_crawl(&finished).await.unwrap();
    let kept = rows("trawl_crawls", "id", &crawl).await;
    assert_eq!(kept.len(), 1);
    assert_eq!((&kept[0]["status"], &kept[0]["done"]), (&"finished".into(), &2.into()));
    assert_eq!(kept[0]["started"], "2023-11-14T22:13:20+00:00");
    assert_eq!(kept[0]["ended"], "2023-11-14T22:13:25+00:00");
}

#[tokio::test]
async fn a_job_is_kept_with_what_it_was_asked_for_and_how_it_ended() {
    let (history, crawl) = (history(), crawl());
    let new: NewJob = serde_json::from_value(json!({
        "id": crawl.id, "project": "shop", "spider": "docs", "urls": [], "sources": [], "arguments": {"page": "3"},
        "settings": {}, "version": "r1", "priority": 0, "idempotency_key": null,
    }))
    .unwrap();
    let mut job = Job::asked_for(new, 7, UnixMs(1_700_000_000_000));
    job.end(JobOutcome::failed("no such spider"), UnixMs(1_700_000_001_000));
    history.keep_jobs(&[job.clone(), job]).await.unwrap();
    let kept = rows("trawl_jobs", "id", &crawl).await;
    for (column, value) in [
        ("project", json!("shop")),
        ("version", json!("r1")),
        ("arguments", json!({"page": "3"})),
        ("status", json!("failed")),
        ("problem", json!("no such spider")),
        ("runner", Value::Null),
    ] {
        assert_eq!(kept[0][column], value, "{column}");
    }
}

#[tokio::test]
async fn entries_of_the_log_are_kept_once_each_also_where_a_call_is_repeated() {
    let (history, crawl) = (history(), crawl());
    let entry = LogEntry::new(&"worker".parse().unwrap(), LogLevel::Error, "it\nbroke");
    let entry = LogEntry { time: UnixMs(1_700_000_000_000), ..entry.in_crawl(&crawl).of_class("http") };
    let twice = [entry.clone(), entry];
    for _ in 0..2 {
        history.keep_logs(&twice).await.unwrap();
    }
    let kept = rows("trawl_logs", "crawl", &crawl).await;
    assert_eq!(kept.len(), 2);
    for (column, value) in [
        ("time", json!("2023-11-14T22:13:20+00:00")),
        ("level", json!("error")),
        ("spider", json!("docs")),
        ("class", json!("http")),
        ("host", Value::Null),
        ("message", json!("it\nbroke")),
    ] {
        assert_eq!(kept[0][column], value, "{column}");
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_an_error_that_another_try_may_mend_and_that_tells_no_password() {
    let url = ServerUrl::new("postgres://trawl:s3cret@127.0.0.1:1/postgres");
    let history = PostgresHistory::new(&url).unwrap();
    let error = history.keep_pages(&[end(&crawl(), "a", 1)]).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
    assert!(!format!("{} {error}", history.name()).contains("s3cret"));
}
