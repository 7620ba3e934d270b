//! The fleet's log: failures, retries and obstacles, in one place for all workers.
//!
//! It is for people who watch what happens. It is capped, and nothing depends on it: entries that cannot be
//! written in time are dropped and counted (`fleet_log`), and no page waits for it. A worker's own log, on its
//! standard error, is `telemetry`.

mod filter;
mod level;
mod message;
mod task_end;

use serde::{Deserialize, Serialize};

pub use filter::LogFilter;
pub use level::{LogLevel, UnknownLevel};
pub use message::{LogMessage, MAX_MESSAGE};
pub use task_end::{MAX_RECIPE_SHOWN, TaskEnd};

use crate::frontier::message::Message;
use crate::names::{CrawlId, CrawlRef, SpiderName, WorkerId};
use crate::text::printable;
use crate::time::{UnixMs, as_rfc_3339};
use crate::web::url::MAX_URL_BYTES;

/// Maximum length of a host's name, in bytes.
const MAX_HOST: usize = 255;

/// Maximum length of a class's name, in bytes.
const MAX_CLASS: usize = 64;

/// One entry of the fleet's log, in the form in which it is stored and programs read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The time of the event, by the fleet's clock.
    #[serde(with = "as_rfc_3339")]
    pub time: UnixMs,
    /// The severity.
    pub level: LogLevel,
    /// The worker that wrote it.
    pub worker: WorkerId,
    /// The spider, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spider: Option<SpiderName>,
    /// The crawl, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crawl: Option<CrawlId>,
    /// The host, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The URL or the task, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The kind of a failure: `timeout`, `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The message.
    pub message: LogMessage,
    /// The end of its task, in the list of ended tasks. The log has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TaskEnd>,
}

impl LogEntry {
    /// Creates an entry with the current time, about nothing in particular.
    pub fn new(worker: &WorkerId, level: LogLevel, message: impl Into<LogMessage>) -> Self {
        Self {
            time: UnixMs::now(),
            level,
            worker: worker.clone(),
            spider: None,
            crawl: None,
            host: None,
            key: None,
            class: None,
            message: message.into(),
            ended: None,
        }
    }

    /// Sets the spider.
    #[must_use]
    pub fn of_spider(self, spider: &SpiderName) -> Self {
        Self { spider: Some(spider.clone()), ..self }
    }

    /// Sets the crawl and its spider.
    #[must_use]
    pub fn in_crawl(self, crawl: &CrawlRef) -> Self {
        Self { crawl: Some(crawl.id.clone()), ..self.of_spider(&crawl.spider) }
    }

    /// Sets the host.
    #[must_use]
    pub fn with_host(self, host: &str) -> Self {
        Self { host: Some(printable(host, MAX_HOST)), ..self }
    }

    /// Sets the URL or the task.
    #[must_use]
    pub fn about(self, key: &str) -> Self {
        Self { key: Some(printable(key, MAX_URL_BYTES)), ..self }
    }

    /// Sets the class of the failure.
    #[must_use]
    pub fn of_class(self, class: &str) -> Self {
        Self { class: Some(printable(class, MAX_CLASS)), ..self }
    }

    /// Sets the crawl, and the URL or the task of a message; for a URL also its host.
    #[must_use]
    pub fn about_work(self, message: &Message) -> Self {
        let entry = self.in_crawl(&message.crawl).about(message.work.as_str());
        match message.target() {
            Some(url) => entry.with_host(url.host().as_str()),
            None => entry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let worker: WorkerId = "w-1".parse().unwrap();
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
        let whole = LogEntry::new(&worker, LogLevel::Error, "a\nb")
            .in_crawl(&crawl)
            .with_host("a.example")
            .about("http://a.example/")
            .of_class("http");
        let whole = LogEntry { time: UnixMs(1_700_000_000_123), ..whole };
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(
            text,
            r#"{"time":"2023-11-14T22:13:20.123Z","level":"error","worker":"w-1","spider":"docs","crawl":"c1","host":"a.example","key":"http://a.example/","class":"http","message":"a\nb"}"#
        );
        assert_eq!(serde_json::from_str::<LogEntry>(&text).unwrap(), whole);
        let bare = LogEntry::new(&worker, LogLevel::Info, "started");
        let text = serde_json::to_string(&bare).unwrap();
        assert!(!text.contains("null"), "{text}");
        assert_eq!(serde_json::from_str::<LogEntry>(&text).unwrap(), bare);
    }

    #[test]
    fn names_that_strangers_write_are_short_and_harm_no_reader() {
        let worker: WorkerId = "w-1".parse().unwrap();
        let entry = LogEntry::new(&worker, LogLevel::Debug, "")
            .with_host(&"\u{1b}[31m".repeat(1_000))
            .about(&"x\n".repeat(100_000))
            .of_class(&"y\u{202e}".repeat(1_000));
        let (host, key, class) = (entry.host.unwrap(), entry.key.unwrap(), entry.class.unwrap());
        assert!(host.len() <= MAX_HOST && key.len() <= MAX_URL_BYTES && class.len() <= MAX_CLASS);
        assert!(!format!("{host}{key}{class}").contains(crate::text::is_harmful));
    }
}
