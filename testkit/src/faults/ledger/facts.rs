//! What is known of a run from the outside.

use std::time::Duration;

use serde_json::Value;

use super::stats::ReportedStats;
use crate::faults::fate::Fate;
use crate::faults::kind::Kind;
use crate::faults::scenario::{Limit, Sink};
use crate::faults::units::Units;

/// A page that the crawl was to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its address, as its items have it.
    pub url: String,
    /// What names it in its crawl, as dead letters have it.
    pub key: String,
    /// How it answers.
    pub fate: Fate,
}

/// One request for a page. Times are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The page's number.
    pub page: usize,
    /// The number of the page whose request a redirect led here; a URL that a redirect names is asked for itself.
    pub via: Option<usize>,
    /// The number of the worker that asked.
    pub who: usize,
    /// When it asked.
    pub asked: Duration,
    /// When it was answered, unless it had gone.
    pub answered: Option<Duration>,
}

/// An item, as it stands in a file or in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemLine {
    /// The page.
    pub url: String,
    /// The item's id.
    pub id: String,
    /// The id of its crawl.
    pub crawl: String,
    /// What has changed of it since an earlier crawl, if there is to be one.
    pub change: Option<String>,
    /// Where redirects led, if they did.
    pub landed: Option<String>,
    /// What was extracted.
    pub fields: Value,
    /// Where it stands.
    pub sink: Sink,
}

/// A dead letter, as it came out of `failed_urls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The key of the page.
    pub url: String,
    /// Its header `reason`.
    pub reason: String,
}

/// An event that says that a crawl has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The event's id: the same on every copy.
    pub id: String,
    /// The crawl.
    pub crawl: String,
    /// What it says of the crawl.
    pub stats: ReportedStats,
}

/// A fault that was injected. Times are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// What.
    pub kind: Kind,
    /// The number of the worker that it hit.
    pub victim: Option<usize>,
    /// When it began.
    pub from: Duration,
    /// When what it broke was whole again.
    pub to: Duration,
}

/// A spell in which no page may be asked for. Times are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// What the crawl or its host was.
    pub why: &'static str,
    /// When that had been confirmed.
    pub from: Duration,
    /// When it was lifted.
    pub to: Duration,
}

/// A dead letter that was sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The key of the page.
    pub url: String,
    /// When that was ordered, since the start of the run.
    pub at: Duration,
}

/// All that is known of a run from the outside.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The pages that sitemaps, links or redirects lead to.
    pub pages: Vec<Page>,
    /// What the crawl takes in.
    pub units: Units,
    /// What was wrong with what the site was asked.
    pub complaints: Vec<String>,
    /// What bounds the crawl.
    pub limit: Option<Limit>,
    /// Where every item is to be.
    pub sinks: Vec<Sink>,
    /// The field that its spider has for the number that a page shows.
    pub field: Option<&'static str>,
    /// Whether every page was crawled before.
    pub is_again: bool,
    /// What the site was asked, in order.
    pub asks: Vec<Ask>,
    /// What stands in files and in the stream.
    pub items: Vec<ItemLine>,
    /// The pages in the web archive.
    pub archived: Vec<String>,
    /// What came out of `failed_urls`; `None` for an engine that keeps dead letters where only it can read them.
    pub dead_letters: Option<Vec<DeadLetter>>,
    /// The events of the crawl's end, without copies; `None` for an engine that publishes none.
    pub ends: Option<Vec<End>>,
    /// What the crawl says of itself at its end.
    pub stats: Option<ReportedStats>,
    /// What was done to the fleet, in order.
    pub faults: Vec<Injected>,
    /// When nothing might be asked for.
    pub quiet: Vec<Quiet>,
    /// Which dead letters were sent again.
    pub replays: Vec<Replay>,
    /// When the crawl was seen to have ended.
    pub ended: Option<Duration>,
    /// How many URLs one worker can have in hand.
    pub in_hand: usize,
    /// How many workers there are.
    pub workers: usize,
}
