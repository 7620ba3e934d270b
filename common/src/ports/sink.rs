//! Sinks: where items go.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Response, Result};
use crate::frontier::Key;
use crate::frontier::message::Message;
use crate::names::CrawlRef;
use crate::spider::Spider;
use crate::spider::item::Item;
use crate::web::headers::Headers;

/// What one page gave, or one task.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The URL as it was admitted, or the task.
    pub key: Key,
    /// The crawl.
    pub crawl: CrawlRef,
    /// The page that linked to it, or the task that yielded it.
    pub referrer: Option<Key>,
    /// Its items.
    pub items: Vec<Item>,
    /// The header fields of the request, and the response; `None` where no sink keeps them ([`Sink::keeps_responses`]).
    pub exchange: Option<(Headers, Response)>,
}

impl Page {
    /// What was handled of this message gave these items, and no response that is kept.
    pub fn of(message: &Message, items: Vec<Item>) -> Self {
        Self {
            key: message.key(),
            crawl: message.crawl.clone(),
            referrer: message.referrer.clone(),
            items,
            exchange: None,
        }
    }
}

/// Takes what pages gave. A page may come more than once; the ids of its items say that they are the same.
#[async_trait]
pub trait Sink: Send + Sync {
    /// What people call it, in health and status: `jsonl items.jsonl`.
    fn name(&self) -> &str;

    /// Whether it keeps responses, not only items.
    fn keeps_responses(&self) -> bool {
        false
    }

    /// Stores all that these pages gave, durably against the death of this process: when it returns, their URLs may be
    /// finished. On an error any part may have been stored, and all of them will be put again.
    async fn put(&self, pages: &[Page]) -> Result<()>;

    /// Finishes what was put off until a file is large enough: called when nothing more is to come for now. More may be
    /// put afterwards, and nothing is lost where this is never called.
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// Opens the sinks of spiders.
pub trait SinkFactory: Send + Sync {
    /// The sinks that a spider's file names, or else those of the settings. Servers are connected to when first needed.
    ///
    /// Fails with `Refused` for what cannot be opened as it is written.
    fn open(&self, spider: &Spider) -> Result<Vec<Arc<dyn Sink>>>;
}
