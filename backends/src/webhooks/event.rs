//! The parts of an event that decide its destinations.

use serde::Deserialize;
use trawl_common::names::CrawlRef;

use crate::rabbitmq::Delivery;

/// An event that the fleet has sent.
#[derive(Deserialize)]
pub(super) struct Event {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) name: String,
    /// The crawl that it belongs to, if any.
    crawl: Option<String>,
    /// The spider of that crawl.
    pub(super) spider: Option<String>,
}

impl Event {
    /// Parses an event; `None` if the fleet has not sent it.
    pub(super) fn new(delivery: &Delivery) -> Option<Self> {
        let event: Self = serde_json::from_slice(&delivery.body).ok().filter(|_| delivery.is_ours)?;
        // The id becomes a header.
        let is_header = event.id.len() < 256 && event.id.bytes().all(|byte| byte.is_ascii_graphic());
        is_header.then_some(event)
    }

    /// Returns the crawl that it belongs to, if any.
    pub(super) fn crawl(&self) -> Option<CrawlRef> {
        let (id, spider) = (self.crawl.as_ref()?, self.spider.as_ref()?);
        Some(CrawlRef { id: id.parse().ok()?, spider: spider.parse().ok()? })
    }
}
