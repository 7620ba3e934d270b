//! Takes deliveries from one queue while a worker runs.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use trawl_common::backoff::Backoff;
use trawl_common::health::Health;
use trawl_common::ports::Result;

use crate::rabbitmq::{Delivery, WebhookQueue};

/// The interval at which the queues are declared again. The broker deletes queues that seem unused, such as one in
/// which deliveries only wait.
const DECLARE_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The consumer of a queue.
pub(super) struct Taking<'a> {
    pub(super) queue: &'a WebhookQueue,
    /// The id of the queue.
    pub(super) id: &'a str,
    /// Number of deliveries handled at a time.
    pub(super) at_once: u16,
    pub(super) health: &'a Health,
    /// The name of this work, for the log.
    pub(super) what: String,
}

impl Taking<'_> {
    /// Handles each delivery until `stop`; then finishes what has begun. A broken connection is replaced.
    pub(super) async fn run<F: Future<Output = Result<()>>>(
        &self,
        stop: &CancellationToken,
        handle: impl Fn(Delivery) -> F,
    ) {
        let mut backoff = Backoff::default();
        while !stop.is_cancelled() {
            let Err(error) = self.take(stop, &handle).await else { continue };
            self.health.report_failure(&self.what, &error);
            stop.run_until_cancelled(backoff.pause()).await;
        }
    }

    /// Takes deliveries until `stop`, until the queues are to be declared again, or until the connection breaks.
    async fn take<F: Future<Output = Result<()>>>(
        &self,
        stop: &CancellationToken,
        handle: &impl Fn(Delivery) -> F,
    ) -> Result<()> {
        let taking = stop.run_until_cancelled(self.queue.take(self.id, self.at_once)).await;
        let Some(mut deliveries) = taking.transpose()? else { return Ok(()) };
        self.health.report_ok(&self.what);
        let mut under_way = FuturesUnordered::new();
        let mut is_broken = Ok(());
        let mut declared_anew = std::pin::pin!(sleep(DECLARE_INTERVAL));
        while is_broken.is_ok() {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = &mut declared_anew => break,
                Some(settled) = under_way.next() => is_broken = settled,
                delivery = deliveries.next() => match delivery {
                    Ok(delivery) => under_way.push(handle(delivery)),
                    Err(error) => is_broken = Err(error),
                },
            }
        }
        // Posted deliveries are to be acknowledged, if that is still possible.
        while let Some(settled) = under_way.next().await {
            is_broken = is_broken.and(settled);
        }
        is_broken
    }
}
