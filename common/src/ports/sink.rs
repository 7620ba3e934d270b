//! Sinks: destinations of items.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileStore, Result};
use crate::frontier::Key;
use crate::frontier::message::Message;
use crate::names::CrawlRef;
use crate::recorded;
use crate::spider::item::Item;
use crate::spider::{Download, Spider};
use crate::web::headers::Headers;
use crate::web::response::Response;

/// The output of one page or one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The key of the URL as it was admitted, or of the task.
    #[serde(with = "recorded")]
    pub key: Key,
    /// The crawl.
    pub crawl: CrawlRef,
    /// The page that linked to it, or the task that yielded it.
    #[serde(with = "recorded::option")]
    pub referrer: Option<Key>,
    /// Its items.
    pub items: Vec<Item>,
    /// The request and the response; `None` if no sink keeps that ([`Sink::keeps_responses`]).
    pub exchange: Option<Exchange>,
}

/// The request for a page and its response, with everything that reading it anew takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The header fields of the request.
    pub request: Headers,
    /// The response.
    pub response: Response,
    /// Number of links from the start.
    pub depth: u16,
    /// The `data` of the page's request, such as [what was carried to it](crate::spider::Carried), if there is any.
    pub data: Option<Value>,
}

impl Page {
    /// Returns the output of this message: these items, and no response.
    pub fn new(message: &Message, items: Vec<Item>) -> Self {
        Self {
            key: message.key(),
            crawl: message.crawl.clone(),
            referrer: message.referrer.clone(),
            items,
            exchange: None,
        }
    }
}

/// Stores the output of pages. A page may come more than once; the ids of its items show that they are the same.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Returns the name that people see in health and status: `jsonl items.jsonl`.
    fn name(&self) -> &str;

    /// Returns whether it keeps responses, not only items.
    fn keeps_responses(&self) -> bool {
        false
    }

    /// Stores all output of these pages, durably against the death of this process: once it returns, their URLs
    /// may be finished. After an error any part may have been stored, and all pages will be put again.
    async fn put(&self, pages: &[Page]) -> Result<()>;

    /// Finishes work that was deferred until a file is large enough. Called when nothing more is to come for now;
    /// more may be put afterwards, and nothing is lost if this is never called.
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// Opens the sinks of spiders, and the stores of their files.
pub trait SinkFactory: Send + Sync {
    /// Opens the sinks that a spider's file names, or else those of the settings. Servers are connected to on
    /// first use.
    ///
    /// Fails with `Refused` if a sink cannot be opened as configured.
    fn open(&self, spider: &Spider) -> Result<Vec<Arc<dyn Sink>>>;

    /// Opens the store of the files of a `[[download]]` of a spider.
    ///
    /// Fails with `Refused` if it cannot be opened as configured.
    fn open_files(&self, spider: &Spider, download: &Download) -> Result<Arc<dyn FileStore>>;
}
