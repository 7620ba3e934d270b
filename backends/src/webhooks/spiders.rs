//! The webhooks of spiders' files.
//!
//! One queue takes every event for all of them, and every worker consumes it:
//!
//! 1. an event of a crawl becomes one delivery for each webhook of the crawl's spider that wants it, in the same queue;
//! 2. a delivery is posted, and acknowledged if the address takes it (2xx);
//! 3. a delivery that was not taken waits in a second queue for a minute, and is posted again, up to [`MAX_TRIES`]
//!    times.
//!
//! All wait for the same time, so that none waits for another one. An address that has just failed is not tried
//! again within that time, so that one that never answers does not delay the others. Anyone who may deploy a
//! spider chooses the addresses, so only those at which requests for pages are allowed are used
//! (`fetch.allow_private` and the like).

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Result, Stats};
use trawl_common::settings::{Settings, Webhook};
use trawl_common::spider::folder::Folder;
use trawl_common::time::UnixMs;

use super::event::Event;
use super::hook::{self, Hook};
use super::post::Client;
use super::taking::Taking;
use crate::rabbitmq::{Delivery, WebhookQueue};

/// The id of the queue.
const ID: &str = "spiders";

/// Number of deliveries that one worker handles at a time.
const CONCURRENCY: u16 = 64;

/// The wait before each further try.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// Maximum number of tries to post an event: they take some eight hours.
const MAX_TRIES: u32 = 480;

/// Time that the webhooks of a crawl are remembered.
const REMEMBERED_TTL: Duration = Duration::from_secs(60);

/// Maximum number of remembered crawls, and of remembered failing addresses.
const MAX_REMEMBERED: u64 = 1_000;

/// Posts events to the addresses in spiders' files.
pub struct SpiderWebhooks {
    stats: Arc<dyn Stats>,
    folder: Folder,
    queue: WebhookQueue,
    client: Client,
    known: Cache<CrawlRef, Arc<Subscribers>>,
    /// The addresses that failed lately.
    failing: Cache<String, ()>,
    health: Health,
}

/// The webhooks of a crawl.
enum Subscribers {
    /// The webhooks.
    These(Vec<Webhook>),
    /// Only others know them: the spider's file is not here.
    KnownElsewhere,
}

impl SpiderWebhooks {
    /// Creates the webhooks; connects to nothing yet. The files of spiders that were not deployed are in `folder`.
    pub fn new(settings: &Settings, stats: Arc<dyn Stats>, folder: Folder) -> Result<Self> {
        let memory = |ttl| Cache::builder().max_capacity(MAX_REMEMBERED).time_to_live(ttl).build();
        Ok(Self {
            stats,
            folder,
            queue: WebhookQueue::new(&settings.rabbitmq, &settings.queues, [ID.to_owned()].into())?,
            client: Client::guarded(&settings.fetch)?,
            known: memory(REMEMBERED_TTL),
            failing: Cache::builder().max_capacity(MAX_REMEMBERED).time_to_live(RETRY_DELAY).build(),
            health: Health::default(),
        })
    }

    /// Delivers until `stop`; then finishes what has begun. Waits if servers are unavailable.
    pub async fn run(self, stop: CancellationToken) {
        let what = "delivering to the webhooks of spiders".to_owned();
        let taking = Taking { queue: &self.queue, id: ID, at_once: CONCURRENCY, health: &self.health, what };
        taking.run(&stop, |delivery| self.handle(delivery)).await;
    }

    async fn handle(&self, delivery: Delivery) -> Result<()> {
        let Some(event) = Event::new(&delivery) else {
            debug!(
                "a message on the exchange `events` is no event, or not signed by this fleet: not delivered"
            );
            return delivery.done().await;
        };
        let Some(crawl) = event.crawl() else { return delivery.done().await };
        let subscribers = self.subscribers(&crawl).await?;
        let Subscribers::These(webhooks) = &*subscribers else {
            return self.put_off(delivery, &event, "the file of its spider is not here").await;
        };
        match &delivery.webhook {
            None => {
                let wanting = webhooks.iter().filter(|one| one.wants(&event.name, event.spider.as_deref()));
                for webhook in wanting {
                    self.queue.address(ID, &delivery, &hook::id(webhook)).await?;
                }
                delivery.done().await
            }
            Some(id) => match webhooks.iter().find(|webhook| hook::id(webhook) == *id) {
                Some(webhook) => self.post(webhook, &event, delivery).await,
                // The file no longer names it.
                None => delivery.done().await,
            },
        }
    }

    async fn post(&self, webhook: &Webhook, event: &Event, delivery: Delivery) -> Result<()> {
        let (url, id) = (&webhook.url, &event.id);
        let hook = match Hook::new(webhook) {
            Ok(hook) => hook,
            // Another worker may have the secret.
            Err(error) => return self.put_off(delivery, event, &error.to_string()).await,
        };
        if self.failing.contains_key(&hook.id) {
            return self.put_off(delivery, event, "it has just failed").await;
        }
        match self.client.post(&hook.address, id, &delivery.body, UnixMs::now().0 / 1000).await {
            Ok(()) => {
                debug!(%url, event = id, "delivered");
                delivery.done().await
            }
            Err(why) => {
                self.failing.insert(hook.id, ());
                self.put_off(delivery, event, &format!("{url}: {why}")).await
            }
        }
    }

    /// Sends the delivery again later, unless the maximum number of tries is reached.
    async fn put_off(&self, delivery: Delivery, event: &Event, why: &str) -> Result<()> {
        let (event, spider) = (&event.id, &event.spider);
        match delivery.tries.saturating_add(1) {
            MAX_TRIES.. => {
                warn!(spider, event, why, "a webhook of a spider failed {MAX_TRIES} times; given up")
            }
            tries => {
                match tries {
                    1 => info!(spider, event, why, "a webhook of a spider failed; trying again"),
                    tries => debug!(spider, event, why, tries, "a webhook of a spider failed again"),
                }
                self.queue.put_off(ID, &delivery, RETRY_DELAY).await?;
            }
        }
        delivery.done().await
    }

    /// Returns the webhooks of a crawl, by its own text of the spider's file, or else by the file here.
    async fn subscribers(&self, crawl: &CrawlRef) -> Result<Arc<Subscribers>> {
        if let Some(known) = self.known.get(crawl) {
            return Ok(known);
        }
        let text = match self.stats.spider_text(crawl).await? {
            Some(text) => Some(text.as_str().to_owned()),
            // An unreadable file counts as missing.
            None => self.folder.text(&crawl.spider).ok().flatten(),
        };
        let subscribers = Arc::new(match text {
            Some(text) => Subscribers::These(self.webhooks(crawl, &text)),
            None if self.stats.terms(crawl).await?.file.is_some() => Subscribers::KnownElsewhere,
            None => Subscribers::These(Vec::new()),
        });
        self.known.insert(crawl.clone(), Arc::clone(&subscribers));
        Ok(subscribers)
    }

    /// Returns the webhooks that can be read. Fetching pages reports the mistakes in the rest of the file.
    fn webhooks(&self, crawl: &CrawlRef, text: &str) -> Vec<Webhook> {
        self.folder.reading(&crawl.spider, text).spider.webhooks
    }
}
