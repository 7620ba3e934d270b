//! Events of crawls, jobs and hosts, for programs that listen to the exchange `events`.

mod crawl;
mod host;
mod job;
mod pattern;

use serde::Serialize;

pub use crawl::{CrawlEvent, EventKind};
pub use host::{HostEvent, HostEventKind, HostNews, Refusal};
pub use job::JobEvent;
pub use pattern::{NoPattern, Pattern};

/// A notification for subscribers. A repeated event has the same id.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "events are few, and each is sent at once")]
pub enum Event {
    /// An event of a crawl.
    Crawl(CrawlEvent),
    /// An event of a job.
    Job(JobEvent),
    /// An event of hosts.
    Host(HostEvent),
}

impl Event {
    /// Returns the name of the event, which is its routing key: `crawl.finished`.
    pub fn name(&self) -> String {
        match self {
            Self::Crawl(event) => event.name(),
            Self::Job(event) => event.name(),
            Self::Host(event) => event.name(),
        }
    }

    /// Returns the id, which every copy of the event has.
    pub fn id(&self) -> String {
        match self {
            Self::Crawl(event) => event.id(),
            Self::Job(event) => event.id(),
            Self::Host(event) => event.id(),
        }
    }
}
