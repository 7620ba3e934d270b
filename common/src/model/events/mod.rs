//! Events of crawls and hosts, for programs that listen to the exchange `events`.

mod crawl;
mod host;
mod pattern;

use serde::Serialize;

pub use crawl::{CrawlEvent, EventKind};
pub use host::{HostEvent, HostEventKind, HostNews, Refusal};
pub use pattern::{NoPattern, Pattern};

/// A notification for subscribers. A repeated event has the same id.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// An event of a crawl.
    Crawl(CrawlEvent),
    /// An event of hosts.
    Host(HostEvent),
}

impl Event {
    /// Returns the name of the event, which is its routing key: `crawl.finished`.
    pub fn name(&self) -> String {
        match self {
            Self::Crawl(event) => event.name(),
            Self::Host(event) => event.name(),
        }
    }

    /// Returns the id, which every copy of the event has.
    pub fn id(&self) -> String {
        match self {
            Self::Crawl(event) => event.id(),
            Self::Host(event) => event.id(),
        }
    }
}
