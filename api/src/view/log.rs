//! The fleet's log.

use serde::Serialize;
use trawl_common::logs;
use utoipa::ToSchema;

use super::{LogLevel, Time};

/// An entry of the fleet's log
#[derive(Serialize, ToSchema)]
pub(crate) struct LogEntry {
    /// The time of the event
    time: Time,
    #[schema(value_type = LogLevel)]
    level: logs::LogLevel,
    /// The worker that wrote it
    worker: String,
    /// Its spider; absent if it has none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    spider: Option<String>,
    /// Its crawl; absent if it has none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    crawl: Option<String>,
    /// The host involved; absent if there is none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    host: Option<String>,
    /// The URL or the task that it is about; absent if there is none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key: Option<String>,
    /// The kind of failure; absent if nothing failed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    class: Option<String>,
    /// The message: one line or several, at most 64 KiB
    message: String,
}

impl From<logs::LogEntry> for LogEntry {
    fn from(entry: logs::LogEntry) -> Self {
        let logs::LogEntry { time, level, worker, spider, crawl, host, key, class, message, ended: _ } =
            entry;
        Self {
            time: time.into(),
            level,
            worker: worker.to_string(),
            spider: spider.map(|spider| spider.to_string()),
            crawl: crawl.map(|crawl| crawl.to_string()),
            host,
            key,
            class,
            message: message.as_str().to_owned(),
        }
    }
}
