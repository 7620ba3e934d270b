//! The fleet's log: failures, retries and other problems.

use askama::Template;
use serde::Deserialize;
use strum::VariantNames;
use trawl_common::logs::LogLevel;

use crate::address::address;
use crate::answers::{LogEntry, Logs};
use crate::ask::Call;
use crate::form::{Asked, all_written, text_of};
use crate::page::{Answer, Here, Page, html};
use crate::shown::Text;
use crate::visit::Visit;

/// The number of entries on one page.
const LIMIT: &str = "100";

/// The filter and the position. An empty field matches everything.
#[derive(Deserialize)]
pub(crate) struct Listing {
    crawl: Option<String>,
    spider: Option<String>,
    host: Option<String>,
    level: Option<String>,
    task: Option<String>,
    cursor: Option<String>,
}

impl Listing {
    /// The non-empty fields.
    fn fields(&self) -> Vec<(&'static str, &str)> {
        let Self { crawl, spider, host, level, task, cursor: _ } = self;
        all_written([("crawl", crawl), ("spider", spider), ("host", host), ("level", level), ("task", task)])
    }

    /// The value of a field; empty if it has none.
    fn field(&self, name: &str) -> &str {
        text_of(&self.fields(), name)
    }

    /// The value of a field for its input.
    fn shown(&self, name: &str) -> Text {
        self.field(name).into()
    }

    fn is_empty(&self) -> bool {
        self.fields().is_empty()
    }

    /// The address of the page that starts at a cursor.
    fn path(&self, cursor: Option<&str>) -> String {
        address("/logs", self.fields().into_iter().chain(cursor.map(|cursor| ("cursor", cursor))))
    }
}

#[derive(Template)]
#[template(path = "logs.html")]
struct LogsPage {
    page: Page,
    listing: Listing,
    levels: &'static [&'static str],
    entries: Vec<LogEntry>,
    is_first: bool,
    next: Option<String>,
}

pub(crate) async fn list(visit: Visit, Asked(listing): Asked<Listing>) -> Answer {
    let call = Call::get(&["logs"]).with("limit", LIMIT).with_any("cursor", listing.cursor.as_deref());
    let call = listing.fields().into_iter().fold(call, |call, (name, value)| call.with(name, value));
    let Logs { entries, next } = visit.ask(call).await?;
    let is_first = listing.cursor.is_none();
    html(&LogsPage {
        // Older entries do not change.
        page: Page::new("Log", Here::Logs, &visit).live(is_first),
        levels: LogLevel::VARIANTS,
        entries,
        is_first,
        next: next.map(|next| listing.path(Some(&next))),
        listing,
    })
}
