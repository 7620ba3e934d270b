//! Takes messages from the broker and decides which of them this worker handles.
//!
//! A URL is claimed as soon as its message is delivered, however busy the worker is: recovery relies on the
//! records knowing everything that was delivered. Claimed URLs then wait for their slot, with their leases
//! extended.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;
use tracing::{debug, info, warn};
use trawl_common::backoff::Backoff;
use trawl_common::format::FORMAT;
use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::ladder::until_another_worker;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::ports::{Claim, Error, ErrorKind, Fatal, one_each};
use trawl_common::settings::Acks;
use trawl_common::time::UnixMs;

use crate::broker::{Consumer, Content, Delivery, Receipt, Unproven};
use crate::internal_message::InternalMessage;
use crate::member::{LOOKING_UP, Member};

/// Name in the health report for calls that fail while the broker is unavailable.
const TAKING: &str = "taking messages";

/// Interval at which a worker that holds enough URLs checks again.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Name in the health report for claims that fail while the store is full.
const TAKING_IN: &str = "taking in URLs of messages";
/// Time after which the store counts as no longer full: a message parked for that reason could have failed
/// again by then.
const FULL_TIME: Duration = Duration::from_secs(20);

/// Takes messages and claims their URLs and tasks.
pub(crate) struct Claiming<'a> {
    pub(crate) member: &'a Member,
}

impl Claiming<'_> {
    /// Consumes until the member is to stop. Replaces a broken consumer.
    pub(crate) async fn run(self) -> Result<(), Fatal> {
        let mut backoff = Backoff::default();
        let Member { health, stop, .. } = self.member;
        while !stop.is_cancelled() {
            let prefetch = self.member.settings.worker.prefetch;
            let Some(opened) =
                stop.run_until_cancelled(self.member.broker.consume(prefetch, self.member.tasks)).await
            else {
                break;
            };
            match opened {
                Ok(consumer) => {
                    health.report_ok(TAKING);
                    info!("waiting for messages");
                    backoff = Backoff::default();
                    self.consume(consumer).await?;
                }
                Err(error) => {
                    health.report_failure(TAKING, &error);
                    stop.run_until_cancelled(backoff.pause()).await;
                }
            }
        }
        Ok(())
    }

    /// Consumes until the member is to stop, or the consumer breaks.
    async fn consume(&self, mut consumer: Box<dyn Consumer>) -> Result<(), Fatal> {
        let most = usize::from(self.member.settings.worker.concurrency).max(16);
        loop {
            let is_crowded = self.is_crowded();
            let taken = tokio::select! {
                biased;
                () = self.member.stop.cancelled() => return Ok(()),
                () = sleep(CHECK_INTERVAL), if is_crowded => continue,
                taken = consumer.next(most), if !is_crowded => taken,
            };
            match taken {
                Ok(deliveries) => self.receive(deliveries).await?,
                Err(error) => {
                    self.member.health.report_failure(TAKING, &error);
                    return Ok(());
                }
            }
        }
    }

    /// Whether this worker holds enough. Needed because the broker limits only unacknowledged messages.
    fn is_crowded(&self) -> bool {
        let is_none = |lane| self.member.settings.queues.acks(lane) == Acks::None;
        Lane::ALL.into_iter().any(is_none) && self.member.is_full()
    }

    /// Handles a batch of deliveries.
    ///
    /// 1. Acknowledges messages whose lane acknowledges on arrival.
    /// 2. Handles deliveries that are not messages of this format.
    /// 3. Joins redeliveries with URLs that are held already.
    /// 4. Claims the rest.
    /// 5. Hands these out.
    async fn receive(&self, deliveries: Vec<Delivery>) -> Result<(), Fatal> {
        self.acknowledge(&deliveries).await;
        let mut messages = Vec::with_capacity(deliveries.len());
        for Delivery { content, receipt } in deliveries {
            match content {
                Content::Message(message) => {
                    // A message that its lane acknowledged on arrival no longer has a receipt.
                    let receipt = (self.member.acks(&message) != Acks::None).then_some(receipt);
                    self.take(message, receipt, &mut messages).await;
                }
                Content::Probe(probe) => self.settle(InternalMessage::Probe(probe, receipt)).await,
                Content::Newer(newer) => {
                    self.name_newer();
                    self.settle(InternalMessage::Newer(newer, receipt)).await;
                }
                Content::Malformed(malformed) => {
                    self.settle(InternalMessage::Malformed(malformed, vec![receipt])).await;
                }
                Content::Unproven(unproven) => match self.request_in(unproven).await? {
                    Some(request) => self.take(request, Some(receipt), &mut messages).await,
                    None => self.drop_unproven(receipt).await,
                },
            }
        }
        self.claim(messages).await
    }

    /// Claims messages that are in flight, and hands out those that this worker is to handle.
    pub(crate) async fn claim(&self, messages: Vec<Message>) -> Result<(), Fatal> {
        if messages.is_empty() {
            return Ok(());
        }
        let Member { records, worker, health, .. } = self.member;
        let claiming = async || one_each(records.claim(worker, &messages).await?, messages.len(), "messages");
        let replies = health.insist("claiming URLs", claiming).await?;
        for (message, reply) in messages.into_iter().zip(replies) {
            self.decide(message, reply).await?;
        }
        Ok(())
    }

    async fn take(&self, message: Message, receipt: Option<Receipt>, taken: &mut Vec<Message>) {
        let checked = if message.is_ours { Ok(message) } else { self.member.requests.check(message) };
        match checked {
            Ok(message) => {
                if !self.member.held.take(&message, receipt) {
                    return;
                }
                // It was parked and has come back to a worker that runs no programs. Its lane takes it to one
                // that does.
                if message.lane == Lane::Task && self.member.tasks == 0 {
                    return self.settle(InternalMessage::Republish(message)).await;
                }
                taken.push(message);
            }
            Err(malformed) => {
                self.settle(InternalMessage::Malformed(malformed, receipt.into_iter().collect())).await
            }
        }
    }

    async fn decide(&self, message: Message, reply: ClaimReply) -> Result<(), Fatal> {
        match reply {
            // The record decides; the copy in a message may be outdated.
            ClaimReply::Take { attempts, starts, deadline } => {
                self.member.hand_out(Message { deadline, ..message }, attempts, starts, false).await?;
            }
            ClaimReply::Full => self.member.hand_out(message, 0, 0, true).await?,
            ClaimReply::SendAgain => self.settle(InternalMessage::Republish(message)).await,
            ClaimReply::Wait { until } => self.settle(InternalMessage::Waits { message, until }).await,
            ClaimReply::StoreFull => {
                self.member.health.report_recent_failure(TAKING_IN, &Error::full(), FULL_TIME);
                let until = UnixMs::now().plus(until_another_worker(0));
                self.settle(InternalMessage::Waits { message, until }).await;
            }
            ClaimReply::Newer => {
                self.name_newer();
                let until = UnixMs::now().plus(until_another_worker(0));
                self.settle(InternalMessage::Waits { message, until }).await;
            }
            // Forgotten at once: the URL's own message may arrive at any time and must not join this one.
            ClaimReply::Drop => {
                if self.member.settings.log.urls {
                    info!(url = %message.work, "dropped: it has ended, waits, or was asked for a moment ago");
                }
                let receipts = self.member.held.forget(&Claim::new(&message));
                self.settle(InternalMessage::Dropped(receipts)).await;
            }
            // There is no record to settle.
            ClaimReply::Unknown => {
                let receipts = self.member.held.forget(&Claim::new(&message));
                let reason = format!("there is no crawl {}", message.crawl.id);
                let malformed = Malformed { text: message.work.to_string(), reason };
                self.settle(InternalMessage::Malformed(malformed, receipts)).await;
            }
        }
        Ok(())
    }

    /// Returns what remains of a message that claims without proof to be the fleet's own. `None` if the store
    /// knows its crawl, whose record sends the URL again, signed. Otherwise it is treated as an external
    /// request, so that nothing is lost if the store is.
    async fn request_in(&self, unproven: Unproven) -> Result<Option<Message>, Fatal> {
        let Member { records, health, .. } = self.member;
        match unproven {
            Unproven::Probe => Ok(None),
            Unproven::Message { request, crawl } => {
                let looking = async || match records.crawl_stats(&crawl.id).await {
                    // The record exists but cannot be read.
                    Err(error) if error.kind == ErrorKind::Corrupt => Ok(true),
                    stats => stats.map(|stats| stats.is_some_and(|stats| stats.crawl_ref() == crawl)),
                };
                let is_known = health.insist(LOOKING_UP, looking).await?;
                Ok((!is_known).then_some(*request))
            }
        }
    }

    /// Logs once that some work needs a newer version.
    fn name_newer(&self) {
        if !self.member.has_met_newer.swap(true, Ordering::Relaxed) {
            warn!(
                format = FORMAT,
                "URLs of a newer trawl are on their way, in a format that this worker does not read: they are left to newer \
                 workers. Update this one"
            );
        }
    }

    async fn drop_unproven(&self, receipt: Receipt) {
        if self.member.unproven.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!(
                "messages say that they are this fleet's, and are not signed by its key: they are dropped. They are from \
                 before it was set, or forged"
            );
        }
        self.settle(InternalMessage::Dropped(vec![receipt])).await;
    }

    /// Acknowledges the deliveries whose lane acknowledges on arrival. If this worker dies now, those without
    /// a record are lost, which such a lane accepts.
    async fn acknowledge(&self, deliveries: &[Delivery]) {
        let is_for_it = |delivery: &&Delivery| match &delivery.content {
            Content::Message(message) => self.member.acks(message) == Acks::None,
            Content::Probe(_) | Content::Newer(_) | Content::Malformed(_) | Content::Unproven(_) => false,
        };
        let receipts: Vec<Receipt> =
            deliveries.iter().filter(is_for_it).map(|delivery| delivery.receipt).collect();
        if !receipts.is_empty()
            && let Err(error) = self.member.broker.ack(&receipts).await
        {
            debug!(%error, "not acknowledged as it arrived; the messages come again");
        }
    }

    async fn settle(&self, own: InternalMessage) {
        self.member.settle_internal(own).await;
    }
}
