//! The selection of log entries.

use super::{LogEntry, LogLevel};
use crate::names::{CrawlId, SpiderName};
use crate::time::UnixMs;

/// A filter for entries: one passes if it matches every given condition. The default passes every entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// The crawl.
    pub crawl: Option<CrawlId>,
    /// The spider.
    pub spider: Option<SpiderName>,
    /// The host.
    pub host: Option<String>,
    /// This level, or a more severe one.
    pub level: Option<LogLevel>,
    /// The URL or task.
    pub key: Option<String>,
    /// At this instant, or later.
    pub since: Option<UnixMs>,
}

impl LogFilter {
    /// Returns whether an entry passes.
    pub fn takes(&self, entry: &LogEntry) -> bool {
        let Self { crawl, spider, host, level, key, since } = self;
        let is_host = |host: &String| entry.host.as_ref().is_some_and(|of| of.eq_ignore_ascii_case(host));
        crawl.as_ref().is_none_or(|crawl| entry.crawl.as_ref() == Some(crawl))
            && spider.as_ref().is_none_or(|spider| entry.spider.as_ref() == Some(spider))
            && host.as_ref().is_none_or(is_host)
            && level.is_none_or(|level| entry.level <= level)
            && key.as_ref().is_none_or(|key| entry.key.as_ref() == Some(key))
            && since.is_none_or(|since| entry.time >= since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::CrawlRef;

    #[test]
    fn an_entry_must_fit_all_that_is_asked() {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
        let entry = LogEntry::new(&"w".parse().unwrap(), LogLevel::Warn, "x").in_crawl(&crawl);
        let entry = LogEntry { time: UnixMs(10), ..entry.with_host("a.example").about("http://a.example/") };
        let whole = LogFilter {
            crawl: Some(crawl.id),
            spider: Some(crawl.spider),
            host: Some("A.example".to_owned()),
            level: Some(LogLevel::Warn),
            key: Some("http://a.example/".to_owned()),
            since: Some(UnixMs(10)),
        };
        assert!(LogFilter::default().takes(&entry) && whole.takes(&entry));
        for other in [
            LogFilter { crawl: Some("c2".parse().unwrap()), ..whole.clone() },
            LogFilter { spider: Some("shop".parse().unwrap()), ..whole.clone() },
            LogFilter { host: Some("b.example".to_owned()), ..whole.clone() },
            LogFilter { level: Some(LogLevel::Error), ..whole.clone() },
            LogFilter { key: Some("http://a.example/b".to_owned()), ..whole.clone() },
            LogFilter { since: Some(UnixMs(11)), ..whole },
        ] {
            assert!(!other.takes(&entry), "{other:?}");
        }
    }
}
