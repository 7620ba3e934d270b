//! Both engines keep every promise of the log: the fleet's on a real Redis.

use std::sync::Arc;

use trawl_backends::embedded::Embedded;
use trawl_backends::redis::{Link, RedisLogs};
use trawl_common::logs::{LogEntry, LogLevel, TaskEnd};
use trawl_common::ports::{ErrorKind, LogPlace, Logs};
use trawl_testkit::conformance::logs::settings;

use crate::support::own_link;

/// The key of the log's stream.
const KEY: &str = "{crawled_urls}:logs";

async fn redis() -> (Link, Arc<dyn Logs>) {
    let link = own_link().await;
    (link.clone(), Arc::new(RedisLogs::new(link, &settings())))
}

fn entry(text: &str) -> LogEntry {
    LogEntry::new(&"w".parse().unwrap(), LogLevel::Info, text)
}

async fn texts(logs: &Arc<dyn Logs>, place: LogPlace) -> Vec<String> {
    let lines = logs.after(place, 100).await.unwrap().lines;
    lines.iter().map(|line| line.entry.message.to_string()).collect()
}

/// Writes to both, and reads each.
async fn they_are_apart(logs: &Arc<dyn Logs>, ended: &Arc<dyn Logs>) {
    logs.append(&[entry("one")]).await.unwrap();
    let end = TaskEnd {
        outcome: "done".to_owned(),
        took_ms: Some(1_500),
        attempts: 1,
        items: 2,
        recipe: "r".to_owned(),
        recipe_bytes: 1,
    };
    let task = LogEntry { ended: Some(end), ..entry("two") };
    ended.append(std::slice::from_ref(&task)).await.unwrap();
    assert_eq!(texts(logs, LogPlace::BEGIN).await, ["one"]);
    let lines = ended.before(LogPlace::END, 10).await.unwrap().lines;
    assert_eq!(lines.into_iter().map(|line| line.entry).collect::<Vec<_>>(), [task]);
    assert!(ended.after(LogPlace(u64::MAX - 1, 0), 10).await.unwrap().lines.len() == 1, "it was begun anew");
}

mod fleet {
    use super::*;

    async fn log() -> ((), Arc<dyn Logs>) {
        ((), redis().await.1)
    }

    trawl_testkit::logs_conformance!(log);

    #[tokio::test]
    async fn what_others_wrote_into_the_stream_is_left_out_and_what_follows_is_read() {
        let (mut link, logs) = redis().await;
        logs.append(&[entry("one")]).await.unwrap();
        for (field, value) in [("entry", "{}"), ("sum", "much"), ("entry", "\u{1b}")] {
            let foreign = ::redis::cmd("XADD").arg(KEY).arg("*").arg(field).arg(value).to_owned();
            let _: String = foreign.query_async(&mut link).await.unwrap();
        }
        logs.append(&[entry("two")]).await.unwrap();
        assert_eq!(texts(&logs, LogPlace::BEGIN).await, ["one", "two"]);
        let back = logs.before(LogPlace::END, 2).await.unwrap();
        assert_eq!((back.lines.len(), back.has_more), (1, true));
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_has_no_follower_miss_an_entry() {
        let (mut link, logs) = redis().await;
        let ahead = ::redis::cmd("XADD").arg(KEY).arg("99999999999999-7").arg("entry").arg("{}").to_owned();
        let _: String = ahead.query_async(&mut link).await.unwrap();
        let place = logs.after(LogPlace::BEGIN, 10).await.unwrap().next;
        logs.append(&[entry("one"), entry("two")]).await.unwrap();
        assert_eq!(texts(&logs, place).await, ["one", "two"]);
    }

    #[tokio::test]
    async fn a_redis_that_is_emptied_begins_the_log_anew_for_who_follows_it() {
        let (mut link, logs) = redis().await;
        logs.append(&[entry("one")]).await.unwrap();
        let place = logs.after(LogPlace::BEGIN, 10).await.unwrap().next;
        let _: u64 = ::redis::cmd("DEL").arg(KEY).query_async(&mut link).await.unwrap();
        let place = logs.after(place, 10).await.unwrap().next;
        logs.append(&[entry("two")]).await.unwrap();
        assert_eq!(texts(&logs, place).await, ["two"]);
    }

    #[tokio::test]
    async fn a_key_of_another_type_is_an_error_that_no_waiting_mends() {
        let (mut link, logs) = redis().await;
        let _: String = ::redis::cmd("SET").arg(KEY).arg("x").query_async(&mut link).await.unwrap();
        assert_eq!(logs.append(&[entry("one")]).await.unwrap_err().kind, ErrorKind::Corrupt);
        assert_eq!(logs.after(LogPlace::BEGIN, 1).await.unwrap_err().kind, ErrorKind::Corrupt);
    }

    #[tokio::test]
    async fn ended_tasks_are_in_a_list_of_their_own() {
        let (link, logs) = redis().await;
        let ended: Arc<dyn Logs> = Arc::new(RedisLogs::of_ended_tasks(link, &settings()));
        they_are_apart(&logs, &ended).await;
    }

    #[tokio::test]
    async fn a_log_that_keeps_nothing_writes_nothing() {
        let (mut link, _) = redis().await;
        let mut none = settings();
        none.keep = 0;
        let logs: Arc<dyn Logs> = Arc::new(RedisLogs::new(link.clone(), &none));
        logs.append(&[entry("one")]).await.unwrap();
        let there: u64 = ::redis::cmd("EXISTS").arg(KEY).query_async(&mut link).await.unwrap();
        assert_eq!((there, texts(&logs, LogPlace::BEGIN).await.len()), (0, 0));
    }
}

mod embedded {
    use super::*;

    async fn log() -> ((), Arc<dyn Logs>) {
        ((), Embedded::in_memory().unwrap().with_log(&settings()).logs())
    }

    trawl_testkit::logs_conformance!(log);

    #[tokio::test]
    async fn ended_tasks_are_in_a_list_of_their_own() {
        let store = Embedded::in_memory().unwrap().with_log(&settings());
        they_are_apart(&store.logs(), &store.ended_tasks()).await;
    }

    #[tokio::test]
    async fn the_log_outlives_its_process_and_is_read_beside_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawl.db");
        let one = Embedded::open(&path).unwrap();
        one.logs().append(&[entry("one")]).await.unwrap();
        drop(one);
        let again = Embedded::open(&path).unwrap();
        again.logs().append(&[entry("two")]).await.unwrap();
        let watched = Embedded::watch(&path).unwrap();
        assert_eq!(texts(&watched.logs(), LogPlace::BEGIN).await, ["one", "two"]);
    }
}
