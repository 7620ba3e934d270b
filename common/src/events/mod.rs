//! Events: what happened to crawls and hosts, for programs that listen to the exchange `events`.

mod crawl;
mod host;
mod pattern;

use serde::Serialize;

pub use crawl::{CrawlEvent, EventKind};
pub use host::{HostEvent, HostEventKind, HostNews, Refusal};
pub use pattern::{NoPattern, Pattern};

/// Something that subscribers are notified of. A repeated event has the same id.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// It happened to a crawl.
    Crawl(CrawlEvent),
    /// It happened to hosts.
    Host(HostEvent),
}

impl Event {
    /// What the event is called, which is its routing key: `crawl.finished`.
    pub fn name(&self) -> String {
        match self {
            Self::Crawl(event) => event.name(),
            Self::Host(event) => event.name(),
        }
    }

    /// The same for every copy of the event.
    pub fn id(&self) -> String {
        match self {
            Self::Crawl(event) => event.id(),
            Self::Host(event) => event.id(),
        }
    }
}
