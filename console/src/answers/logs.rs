//! The fleet's log.

use serde::Deserialize;
use trawl_common::logs::{LogLevel, LogMessage};

use crate::address;
use crate::shown::{Text, Time};

/// Maximum length of the first line, in characters; a longer one is folded with the rest.
const MAX_FIRST_LINE: usize = 300;

/// A page of the log.
#[derive(Deserialize)]
pub(crate) struct Logs {
    pub(crate) entries: Vec<LogEntry>,
    pub(crate) next: Option<String>,
}

/// An entry of the log.
#[derive(Deserialize)]
pub(crate) struct LogEntry {
    pub(crate) time: Time,
    pub(crate) level: LogLevel,
    pub(crate) worker: Text,
    pub(crate) spider: Option<Text>,
    pub(crate) crawl: Option<Text>,
    pub(crate) host: Option<Text>,
    pub(crate) key: Option<Text>,
    pub(crate) class: Option<Text>,
    message: LogMessage,
}

impl LogEntry {
    /// The CSS class of its level.
    pub(crate) fn style(&self) -> &'static str {
        match self.level {
            LogLevel::Fatal | LogLevel::Panic | LogLevel::Error => "bad",
            LogLevel::Warn => "paused",
            LogLevel::Info => "ok",
            LogLevel::Debug | LogLevel::Trace => "",
        }
    }

    /// The part that is shown at once.
    pub(crate) fn line(&self) -> String {
        let line = self.message.first_line().0;
        match line.char_indices().nth(MAX_FIRST_LINE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }

    /// The address of its URL's page in its crawl, or of its task, if it is about one.
    pub(crate) fn path(&self) -> Option<String> {
        let key = self.key.as_ref()?.as_str();
        match &self.crawl {
            Some(crawl) if key.starts_with("http") => Some(address::standing(key, crawl.as_str())),
            crawl => address::is_task(key).then(|| address::task(key, crawl.as_ref().map(Text::as_str))),
        }
    }

    /// The whole message, if it is longer than the part shown at once.
    pub(crate) fn whole(&self) -> Option<&str> {
        let (line, rest) = self.message.first_line();
        (rest.is_some() || line.chars().nth(MAX_FIRST_LINE).is_some()).then_some(self.message.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(message: &str) -> LogEntry {
        serde_json::from_value(serde_json::json!({
            "time": "2026-01-31T12:00:00.000Z", "level": "error", "worker": "w", "message": message,
        }))
        .unwrap()
    }

    #[test]
    fn what_is_long_or_has_more_lines_is_folded() {
        let short = entry("not found");
        assert_eq!((short.line(), short.whole()), ("not found".to_owned(), None));
        let trace = entry("it broke\n  at main");
        assert_eq!((trace.line(), trace.whole()), ("it broke".to_owned(), Some("it broke\n  at main")));
        let long = "ä".repeat(MAX_FIRST_LINE + 1);
        assert_eq!(entry(&long).line(), format!("{}…", "ä".repeat(MAX_FIRST_LINE)));
        assert_eq!(entry(&long).whole(), Some(&*long));
    }
}
