//! Webhooks: posting events to the addresses in settings, at least once.
//!
//! Each address has its own queue on RabbitMQ, bound to `events`, from which every worker delivers:
//!
//! 1. an event that the address does not want is dropped, as is one that the fleet did not sign;
//! 2. any other is posted (`post`), and acknowledged if the address takes it (2xx);
//! 3. an event that was not taken waits in a second queue, longer each time, and is posted again, up to sixty
//!    times.
//!
//! So a worker that dies in between may have posted an event twice, but never loses one. The webhooks of spiders'
//! files share a queue (`spiders.rs`).

mod event;
mod hook;
mod post;
mod spiders;
mod taking;

use std::sync::Arc;
use std::time::Duration;

use event::Event;
use futures::future::join_all;
use hook::Hook;
pub(crate) use post::{Address, Client};
pub use spiders::SpiderWebhooks;
use taking::Taking;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use trawl_common::health::Health;
use trawl_common::ports::Result;
use trawl_common::settings::Settings;
use trawl_common::time::UnixMs;

use crate::rabbitmq::{Delivery, WebhookQueue};

/// Number of events that one worker posts to one address at a time.
const CONCURRENCY: u16 = 4;

/// The wait after the first try; it doubles with each.
const MIN_WAIT: Duration = Duration::from_secs(1);
/// Maximum wait between two tries.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// Maximum number of tries to post an event: they take more than eight hours.
const MAX_TRIES: u32 = 60;

/// Posts events to the addresses in settings.
pub struct Webhooks {
    hooks: Vec<Hook>,
    queue: WebhookQueue,
    client: Client,
    health: Health,
}

impl Webhooks {
    /// Reads the secrets; connects to nothing yet. Returns `None` if settings name no address; fails with
    /// `Refused` if a secret is not available.
    pub fn new(settings: &Settings) -> Result<Option<Self>> {
        if settings.webhooks.is_empty() {
            return Ok(None);
        }
        let hooks = settings.webhooks.iter().map(Hook::new).collect::<Result<Vec<_>>>()?;
        let ids: Arc<[String]> = hooks.iter().map(|hook| hook.id.clone()).collect();
        let queue = WebhookQueue::new(&settings.rabbitmq, &settings.queues, ids)?;
        Ok(Some(Self { hooks, queue, client: Client::new()?, health: Health::default() }))
    }

    /// Delivers until `stop`; then finishes what has begun. Waits if the broker is unavailable.
    pub async fn run(self, stop: CancellationToken) {
        join_all(self.hooks.iter().map(|hook| self.serve(hook, &stop))).await;
    }

    /// Delivers to one address.
    async fn serve(&self, hook: &Hook, stop: &CancellationToken) {
        let url = &hook.settings.url;
        info!(%url, id = hook.id, "delivering events to a webhook");
        let what = format!("delivering to the webhook {url}");
        let taking =
            Taking { queue: &self.queue, id: &hook.id, at_once: CONCURRENCY, health: &self.health, what };
        taking.run(stop, |delivery| self.handle(hook, delivery)).await;
    }

    /// Posts an event, if it is to be posted. The message is removed when the event was taken, deferred or given
    /// up.
    async fn handle(&self, hook: &Hook, delivery: Delivery) -> Result<()> {
        let url = &hook.settings.url;
        let Some(event) = Event::new(&delivery) else {
            warn!(%url, "a message on the exchange `events` is no event, or not signed by this fleet: not delivered");
            return delivery.done().await;
        };
        if !hook.settings.wants(&event.name, event.spider.as_deref()) {
            return delivery.done().await;
        }
        let id = &event.id;
        let Err(why) = self.client.post(&hook.address, id, &delivery.body, UnixMs::now().0 / 1000).await
        else {
            debug!(%url, event = id, "delivered");
            return delivery.done().await;
        };
        match wait_after(delivery.tries.saturating_add(1)) {
            Some(wait) => {
                match delivery.tries {
                    0 => {
                        warn!(%url, event = id, why, "a webhook did not take an event; trying again for some hours")
                    }
                    tries => debug!(%url, event = id, why, tries, ?wait, "not taken again"),
                }
                self.queue.put_off(&hook.id, &delivery, wait).await?;
            }
            None => {
                warn!(%url, event = id, why, "a webhook did not take an event {MAX_TRIES} times; given up")
            }
        }
        delivery.done().await
    }
}

/// Returns the wait of an event after `tries` failed posts; `None` if it is to be given up.
fn wait_after(tries: u32) -> Option<Duration> {
    let doubled = MIN_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(16));
    (tries < MAX_TRIES).then(|| doubled.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_ten_minutes_and_ends_after_eight_hours() {
        let waits: Vec<u64> = (1..).map_while(wait_after).map(|wait| wait.as_secs()).collect();
        assert_eq!(waits[..4], [1, 2, 4, 8]);
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] <= 600), "{waits:?}");
        assert!((8..9).contains(&(waits.iter().sum::<u64>() / 3600)));
    }
}
