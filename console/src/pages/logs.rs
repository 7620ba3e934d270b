//! The fleet's log: what failed, was tried again or got in the way.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use serde::Deserialize;
use strum::VariantNames;
use trawl_common::logs::{LogLevel, LogMessage};
use url::form_urlencoded;

use crate::Console;
use crate::ask::Call;
use crate::form::{Asked, written};
use crate::guard::Visitor;
use crate::page::{Answer, Here, Page, html};
use crate::shown::{Text, Time};

/// How many are on one page.
const LIMIT: &str = "100";

/// A first line that is longer, in characters, is folded with what follows.
const LINE: usize = 300;

/// Which entries. What is empty leaves all in.
#[derive(Deserialize)]
pub(crate) struct Listing {
    crawl: Option<String>,
    spider: Option<String>,
    host: Option<String>,
    level: Option<String>,
    task: Option<String>,
    cursor: Option<String>,
}

/// What the API answers.
#[derive(Deserialize)]
struct Logs {
    entries: Vec<Entry>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    time: Time,
    level: LogLevel,
    worker: Text,
    spider: Option<Text>,
    crawl: Option<Text>,
    host: Option<Text>,
    key: Option<Text>,
    class: Option<Text>,
    message: LogMessage,
}

impl Entry {
    /// The style of its level.
    fn style(&self) -> &'static str {
        match self.level {
            LogLevel::Fatal | LogLevel::Panic | LogLevel::Error => "bad",
            LogLevel::Warn => "paused",
            LogLevel::Info => "ok",
            LogLevel::Debug | LogLevel::Trace => "",
        }
    }

    /// What is shown at once: as much as is easily read.
    fn line(&self) -> String {
        let line = self.message.first_line().0;
        match line.char_indices().nth(LINE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }

    /// The page of its URL in its crawl, if it is about one.
    fn path(&self) -> Option<String> {
        let (crawl, key) = (self.crawl.as_ref()?.as_str(), self.key.as_ref()?.as_str());
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("url", key).finish();
        key.starts_with("http").then(|| format!("/crawls/{crawl}/url?{query}"))
    }

    /// All of it, if that is more.
    fn whole(&self) -> Option<&str> {
        let (line, rest) = self.message.first_line();
        (rest.is_some() || line.chars().nth(LINE).is_some()).then_some(self.message.as_str())
    }
}

impl Listing {
    /// Its fields that say something.
    fn fields(&self) -> Vec<(&'static str, &str)> {
        let Self { crawl, spider, host, level, task, cursor: _ } = self;
        let all = [("crawl", crawl), ("spider", spider), ("host", host), ("level", level), ("task", task)];
        all.into_iter().filter_map(|(name, field)| Some((name, written(field)?))).collect()
    }

    /// What one of its fields says.
    fn field(&self, name: &str) -> &str {
        self.fields().into_iter().find(|(field, _)| *field == name).map_or("", |(_, value)| value)
    }

    /// The same as its input shows it.
    fn shown(&self, name: &str) -> Text {
        self.field(name).into()
    }

    fn is_empty(&self) -> bool {
        self.fields().is_empty()
    }

    /// The page of it, from a cursor on.
    fn path(&self, cursor: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.fields()).extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
        match query.finish() {
            none if none.is_empty() => "/logs".to_owned(),
            query => format!("/logs?{query}"),
        }
    }
}

#[derive(Template)]
#[template(path = "logs.html")]
struct LogsPage {
    page: Page,
    listing: Listing,
    levels: &'static [&'static str],
    entries: Vec<Entry>,
    is_first: bool,
    next: Option<String>,
}

pub(crate) async fn list(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Asked(listing): Asked<Listing>,
) -> Answer {
    let call = Call::get(&["logs"]).with("limit", LIMIT).with_any("cursor", listing.cursor.as_deref());
    let call = listing.fields().into_iter().fold(call, |call, (name, value)| call.with(name, value));
    let Logs { entries, next } = console.ask(&visitor, call).await?;
    let is_first = listing.cursor.is_none();
    html(&LogsPage {
        // What is older does not change.
        page: Page::new("Log", Here::Logs, &visitor).live(is_first),
        levels: LogLevel::VARIANTS,
        entries,
        is_first,
        next: next.map(|next| listing.path(Some(&next))),
        listing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(message: &str) -> Entry {
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
        let long = "ä".repeat(LINE + 1);
        assert_eq!(entry(&long).line(), format!("{}…", "ä".repeat(LINE)));
        assert_eq!(entry(&long).whole(), Some(&*long));
    }
}
