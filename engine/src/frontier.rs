//! A worker's calls: claim, start, extend, settle, release.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{debug, info};
use trawl_common::frontier::StartReply;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    self, Activity, BeatReply, Claim, Claimed, Disposition, Fatal, Frontier, Heartbeat, Settled, Settlement,
    one_each,
};
use trawl_common::settings::Acks;
use trawl_common::web::url::CanonicalUrl;

use crate::internal_message::InternalMessage;
use crate::member::Member;
use crate::records::{TaskStart, Urgent};
use crate::settle::Plan;

/// The time that a worker counts as alive after a heartbeat.
const BEAT_TTL: Duration = Duration::from_secs(15);

/// The time that a worker that stops waits for the engine to settle its own messages. While a server is
/// unavailable that could take forever, and the worker's URLs can still be released on the other server.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Name in the health report for calls that fail while starts cannot be counted.
const COUNTING: &str = "counting starts";

impl Member {
    /// Acknowledges the messages of these claims, if their lane acknowledges early.
    async fn acknowledge_early(&self, begun: impl IntoIterator<Item = &Claim>) {
        let is_early = |lane| self.settings.queues.acks(lane) == Acks::Early;
        if Lane::ALL.into_iter().any(is_early) {
            let receipts = begun.into_iter().flat_map(|claim| self.held.receipts_if(claim, is_early));
            let early: Vec<_> = receipts.collect();
            if let Err(error) = self.broker.ack(&early).await {
                // The message will be redelivered and join the URL that is held.
                debug!(%error, "early ack failed");
            }
        }
    }
}

#[async_trait]
impl Frontier for Member {
    async fn claim(&self, max: usize) -> Result<Vec<Claimed>, Fatal> {
        Ok(self.claimed.lock().await.next(max).await)
    }

    async fn claim_tasks(&self, max: usize) -> Result<Vec<Claimed>, Fatal> {
        Ok(self.claimed_tasks.lock().await.next(max).await)
    }

    /// Acknowledges the messages of URLs that start, on lanes with early acknowledgements.
    async fn start(&self, urls: &[Claim]) -> Result<Vec<StartReply>, Fatal> {
        let Self { records, health, worker, .. } = self;
        let counting = async || one_each(records.start(worker, urls).await?, urls.len(), "starts");
        let starts = health.insist(COUNTING, counting).await?;
        let begun = urls.iter().zip(&starts).filter(|(_, start)| **start == StartReply::Go);
        self.acknowledge_early(begun.map(|(claim, _)| claim)).await;
        Ok(starts)
    }

    /// If a more urgent task comes first, hands out that task, and then the given one again.
    async fn start_task(&self, task: &Claimed) -> Result<Option<StartReply>, Fatal> {
        let Self { records, health, worker, .. } = self;
        let starting = || records.start_task(worker, &task.message);
        match health.insist(COUNTING, starting).await? {
            TaskStart::This(start) => {
                let claim = (start == StartReply::Go).then(|| Claim::new(&task.message));
                self.acknowledge_early(claim.as_ref()).await;
                Ok(Some(start))
            }
            TaskStart::Behind(urgent) => {
                let Urgent { message, attempts, starts } = *urgent;
                // A task that this worker holds already, because its lease had lapsed, is carried on.
                if self.held.take(&message, None) {
                    self.hand_out(message, attempts, starts, false).await?;
                }
                self.send_out(task.clone());
                Ok(None)
            }
        }
    }

    async fn extend(&self, urls: &[&Message]) -> Result<Vec<bool>, Fatal> {
        // Checked once: other leases may become doubtful in the meantime.
        let is_in_doubt: Vec<bool> =
            urls.iter().map(|url| self.held.is_older(url, self.lease_period())).collect();
        let in_doubt = urls.iter().zip(&is_in_doubt).filter(|(_, is_in_doubt)| **is_in_doubt);
        let in_doubt: Vec<Message> = in_doubt.map(|(url, _)| (*url).clone()).collect();
        let mut held = self.extend(&in_doubt).await?.into_iter();
        Ok(is_in_doubt.into_iter().map(|is_in_doubt| !is_in_doubt || held.next() == Some(true)).collect())
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Settled, Fatal> {
        let mut plan = Plan::default();
        batch.into_iter().for_each(|settlement| plan.add(self, settlement));
        plan.carry_out(self).await
    }

    /// Gives back everything that this worker holds.
    ///
    /// 1. Stops claiming: a later claim would never be released.
    /// 2. Waits until the engine has settled its own messages.
    /// 3. Releases the rest.
    /// 4. Has the broker handle every acknowledgement.
    /// 5. Signs this worker off.
    async fn release(&self) -> Result<(), Fatal> {
        self.stop.cancel();
        let settled = async {
            self.has_stopped.cancelled().await;
            let (done, flushed) = oneshot::channel();
            // Without a receiver there is nothing to wait for.
            if self.own.send(InternalMessage::Flush(done)).await.is_ok() {
                let _ = flushed.await;
            }
        };
        // If that takes too long, a URL claimed or settled meanwhile is sent again when its lease lapses.
        let _ = timeout(SHUTDOWN_TIMEOUT, settled).await;
        let held = self.held.older_than(Duration::ZERO);
        if !held.is_empty() {
            info!(urls = held.len(), "giving back what did not finish in time");
            let released = |message| Settlement { message, disposition: Disposition::Release };
            self.settle(held.into_iter().map(released).collect()).await?;
        }
        match timeout(SHUTDOWN_TIMEOUT, self.broker.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                debug!(%error, "could not end consuming: settled messages may be delivered once more")
            }
            Err(_) => debug!("ending to consume took too long: settled messages may be delivered once more"),
        }
        if let Err(error) = self.records.leave(&self.worker).await {
            debug!(%error, "could not say that this worker ends");
        }
        Ok(())
    }

    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool, Fatal> {
        let Self { records, health, .. } = self;
        health.insist("looking for a URL", || records.has_seen(crawl, url)).await
    }

    async fn beat(&self, beat: &Heartbeat) -> ports::Result<BeatReply> {
        self.records.beat(beat, BEAT_TTL).await
    }

    fn activity(&self) -> Activity {
        Activity { in_flight: self.held.len(), unproven: self.unproven.load(Ordering::Relaxed) }
    }
}
