//! The facts about a run, as seen from the outside.

use std::time::Duration;

use serde_json::Value;

use super::stats::ReportedStats;
use crate::faults::fate::Fate;
use crate::faults::kind::Kind;
use crate::faults::scenario::{Limit, Sink};
use crate::faults::units::Units;

/// A page that the crawl should fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its URL, as in its items.
    pub url: String,
    /// Its key in the crawl, as in dead letters.
    pub key: String,
    /// Its answer.
    pub fate: Fate,
}

/// One request for a page. Times are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The number of the page.
    pub page: usize,
    /// The number of the page whose request was redirected here. `None` for a URL in a redirect, which is requested on
    /// its own.
    pub via: Option<usize>,
    /// The number of the worker that sent it.
    pub who: usize,
    /// When it arrived.
    pub asked: Duration,
    /// When it was answered; `None` if the client had gone.
    pub answered: Option<Duration>,
}

/// An item, as found in a file or in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemLine {
    /// The URL of the page.
    pub url: String,
    /// The item's id.
    pub id: String,
    /// The id of its crawl.
    pub crawl: String,
    /// Its change since an earlier crawl, if the item has one.
    pub change: Option<String>,
    /// The final URL, if there were redirects.
    pub landed: Option<String>,
    /// The extracted fields.
    pub fields: Value,
    /// The sink that it was found in.
    pub sink: Sink,
}

/// A dead letter, as read from `failed_urls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The key of the page.
    pub url: String,
    /// Its header `reason`.
    pub reason: String,
}

/// An event about the end of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The event's id, equal in every copy.
    pub id: String,
    /// The id of the crawl.
    pub crawl: String,
    /// The stats in the event.
    pub stats: ReportedStats,
}

/// An injected fault. Times are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// Its kind.
    pub kind: Kind,
    /// The number of the worker that it hit.
    pub victim: Option<usize>,
    /// When it began.
    pub from: Duration,
    /// When its damage was repaired.
    pub to: Duration,
}

/// A period in which no page may be requested. Times are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// The state of the crawl or its host.
    pub why: &'static str,
    /// When that state had been confirmed.
    pub from: Duration,
    /// When it was lifted.
    pub to: Duration,
}

/// A dead letter that was replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The key of the page.
    pub url: String,
    /// When the replay was ordered, since the start of the run.
    pub at: Duration,
}

/// All facts about a run, as seen from the outside.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The pages that sitemaps, links or redirects lead to.
    pub pages: Vec<Page>,
    /// The kind of work of the crawl.
    pub units: Units,
    /// Invalid requests that the site received.
    pub complaints: Vec<String>,
    /// The limit of the crawl.
    pub limit: Option<Limit>,
    /// The sinks that every item should be in.
    pub sinks: Vec<Sink>,
    /// The spider's field for the number that a page shows.
    pub field: Option<&'static str>,
    /// Whether every page was crawled before.
    pub is_again: bool,
    /// The requests that the site received, in order.
    pub asks: Vec<Ask>,
    /// The items in files and in the stream.
    pub items: Vec<ItemLine>,
    /// The URLs in the web archive.
    pub archived: Vec<String>,
    /// The messages from `failed_urls`; `None` for an engine whose dead letters only it can read.
    pub dead_letters: Option<Vec<DeadLetter>>,
    /// The events of the crawl's end, without duplicates; `None` for an engine that publishes none.
    pub ends: Option<Vec<End>>,
    /// The stats of the crawl at its end.
    pub stats: Option<ReportedStats>,
    /// The faults, in order.
    pub faults: Vec<Injected>,
    /// The periods in which no page might be requested.
    pub quiet: Vec<Quiet>,
    /// The dead letters that were replayed.
    pub replays: Vec<Replay>,
    /// When the crawl was seen to have ended.
    pub ended: Option<Duration>,
    /// Maximum number of URLs that one worker can have in hand.
    pub in_hand: usize,
    /// Number of workers.
    pub workers: usize,
}
