//! Items as signed posts to a URL.

use async_trait::async_trait;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use trawl_common::ports::{Error, ErrorKind, Page, Result, Sink};
use trawl_common::settings::{ServerUrl, WebhookSecret};
use trawl_common::spider::item::{Change, Item};
use trawl_common::time::UnixMs;
use trawl_web::Guard;

use crate::webhooks::{Address, Client};

/// Maximum number of items in one post.
const MAX_ITEMS: usize = 500;

/// Size of a post in bytes beyond which no further item is added.
const MAX_BYTES: usize = 4 << 20;

/// A URL that items are posted to, as JSON arrays.
pub(super) struct Webhook {
    name: String,
    client: Client,
    address: Address,
    /// Whether unchanged items are left out.
    changed: bool,
}

impl Webhook {
    /// Creates the sink. A URL chosen by someone who does not own the machine must be where `guard` allows requests.
    ///
    /// # Errors
    /// Fails with `Refused` if the secret is not available.
    pub(super) fn new(url: &ServerUrl, secret: &WebhookSecret, changed: bool, guard: &Guard) -> Result<Self> {
        let name = format!("webhook {url}");
        let refused = |error| Error::new(ErrorKind::Refused, format_args!("{name}: secret: {error}"));
        let secret = secret.reveal(|name| std::env::var(name).ok()).map_err(refused)?;
        let client = if url.is_guarded() { Client::behind(guard.clone())? } else { Client::new()? };
        Ok(Self { client, address: Address::new(url.clone(), &secret)?, changed, name })
    }

    fn takes(&self, item: &Item) -> bool {
        !(self.changed && item.change == Some(Change::Unchanged))
    }

    async fn post(&self, batch: &Batch) -> Result<()> {
        let body = format!("[{}]", batch.items.join(","));
        let id = HEXLOWER.encode(&batch.ids.clone().finalize()[..16]);
        let posted = self.client.post(&self.address, &id, body.as_bytes(), UnixMs::now().0 / 1000).await;
        posted.map_err(|why| Error::new(ErrorKind::Unavailable, format_args!("{}: {why}", self.name)))
    }
}

/// The items of one post.
#[derive(Default)]
struct Batch {
    items: Vec<String>,
    bytes: usize,
    /// A hash of their ids.
    ids: Sha256,
}

impl Batch {
    fn add(&mut self, item: &Item) -> Result<()> {
        let text = serde_json::to_string(item)
            .map_err(|error| Error::caused_by(ErrorKind::Refused, "an item as JSON", &error))?;
        self.bytes += text.len();
        self.ids.update(item.id.as_bytes());
        self.items.push(text);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.items.len() >= MAX_ITEMS || self.bytes >= MAX_BYTES
    }
}

#[async_trait]
impl Sink for Webhook {
    fn name(&self) -> &str {
        &self.name
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        let mut batch = Batch::default();
        for item in pages.iter().flat_map(|page| &page.items).filter(|item| self.takes(item)) {
            batch.add(item)?;
            if batch.is_full() {
                self.post(&std::mem::take(&mut batch)).await?;
            }
        }
        if !batch.items.is_empty() {
            self.post(&batch).await?;
        }
        Ok(())
    }
}
