//! The decision which received messages a worker may handle.

use redis::Script;
use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::message::Message;
use trawl_common::metrics;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{ErrorKind, Result};
use trawl_common::time::UnixMs;

use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::foreign;
use crate::redis::script_calls::{BATCH, batches, by_crawl, corrupt, optional};
use crate::redis::seen::{entry, seen_keys};

/// The script's reply for a message that is to be dropped.
const DROP: i64 = -1;
/// Its reply for one that is to be published once more.
const SEND_AGAIN: i64 = -2;
/// Its reply for one that is to be snoozed: another worker holds the URL, its crawl is paused, or the message
/// comes early.
const PUT_ASIDE: i64 = -3;
/// Its reply for one whose crawl has reached its limit.
const FULL: i64 = -5;
/// Its reply for one without a record when the store is full.
const NO_ROOM: i64 = -6;
/// Its reply for one whose record only newer programs can read.
const NEWER: i64 = -7;

/// The purpose of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To hold the URLs of messages that have just arrived.
    Claim,
    /// To go on holding URLs that it claimed earlier.
    Extend,
}

/// The data of tasks and requests that a call carries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Brings {
    /// Their keys.
    Keys,
    /// Their payloads as well.
    Payloads,
}

impl RedisRecords {
    pub(crate) async fn claim_all(
        &self,
        worker: &WorkerId,
        messages: &[Message],
        purpose: Purpose,
    ) -> Result<Vec<ClaimReply>> {
        let mut replies = vec![ClaimReply::Drop; messages.len()];
        for (crawl, places) in by_crawl(messages, |message| &message.crawl) {
            for places in places.chunks(BATCH) {
                let batch: Vec<&Message> = places.iter().map(|&at| &messages[at]).collect();
                let reply = self.claim_batch(worker, crawl, &batch, purpose).await;
                let reply = self.unless_foreign(crawl, reply).await?.unwrap_or_else(|| {
                    vec![ClaimReply::Wait { until: UnixMs::now().plus(foreign::WAIT) }; batch.len()]
                });
                for (&at, reply) in places.iter().zip(reply) {
                    replies[at] = reply;
                }
            }
        }
        Ok(replies)
    }

    async fn claim_batch(
        &self,
        worker: &WorkerId,
        crawl: &CrawlRef,
        messages: &[&Message],
        purpose: Purpose,
    ) -> Result<Vec<ClaimReply>> {
        if !self.index_now_and_then(crawl).await? {
            return Ok(vec![ClaimReply::Unknown; messages.len()]);
        }
        if !messages.iter().any(|message| message.work.has_payload()) {
            return self.claim_or_take_in(worker, crawl, messages, purpose).await;
        }
        self.claim_with_payloads(worker, crawl, messages, purpose).await
    }

    /// Sends the payload of a task or a request only if it has no record: that is rare, and a payload may have a
    /// megabyte.
    async fn claim_with_payloads(
        &self,
        worker: &WorkerId,
        crawl: &CrawlRef,
        messages: &[&Message],
        purpose: Purpose,
    ) -> Result<Vec<ClaimReply>> {
        let known = &self.scripts.claim_known;
        let mut replies = self.claim_by(known, worker, crawl, messages, (purpose, Brings::Keys)).await?;
        let is_new = |at: &usize| replies[*at] == ClaimReply::StoreFull;
        let new: Vec<usize> = (0..messages.len()).filter(is_new).collect();
        for places in batches(&new, |&at| messages[at].work.payload_bytes()) {
            let batch: Vec<&Message> = places.iter().map(|&at| messages[at]).collect();
            let taken_in = self.claim_or_take_in(worker, crawl, &batch, purpose).await?;
            for (&at, reply) in places.iter().zip(taken_in) {
                replies[at] = reply;
            }
        }
        Ok(replies)
    }

    /// Claims, or extends, and admits messages without a record.
    async fn claim_or_take_in(
        &self,
        worker: &WorkerId,
        crawl: &CrawlRef,
        messages: &[&Message],
        purpose: Purpose,
    ) -> Result<Vec<ClaimReply>> {
        let by =
            async |script, brings| self.claim_by(script, worker, crawl, messages, (purpose, brings)).await;
        match purpose {
            Purpose::Extend => by(&self.scripts.extend, Brings::Payloads).await,
            Purpose::Claim => match by(&self.scripts.claim, Brings::Payloads).await {
                Err(error) if error.kind == ErrorKind::Full => {
                    by(&self.scripts.claim_known, Brings::Keys).await
                }
                reply => reply,
            },
        }
    }

    async fn claim_by(
        &self,
        script: &Script,
        worker: &WorkerId,
        crawl: &CrawlRef,
        messages: &[&Message],
        (purpose, brings): (Purpose, Brings),
    ) -> Result<Vec<ClaimReply>> {
        let keys = CrawlKeys::new(crawl);
        let mut call = script.prepare_invoke();
        call.key(&keys.crawl);
        seen_keys(&mut call, &keys);
        call.key(&keys.pending).key(&keys.hosts);
        call.arg(worker.as_str()).arg(optional(crawl.is_adhoc().then_some(self.again.as_millis())));
        call.arg(u8::from(purpose == Purpose::Extend));
        call.arg(self.possession().as_millis() as u64);
        for message in messages {
            entry(&mut call, message.work.as_str());
            call.arg(message.lane.as_str()).arg(message.depth);
            call.arg(optional(message.deadline.map(|deadline| deadline.0)));
            call.arg(optional(message.referrer.as_ref())).arg(whose(message));
            call.arg(optional(message.wake.map(|wake| wake.0)));
            if message.work.has_payload() {
                let payload = message.work.payload().filter(|_| brings == Brings::Payloads);
                call.arg(payload.unwrap_or_default());
            }
        }
        let mut reply = answers(self.redis.run(&call).await?)?;
        if reply.is_empty() {
            // Messages that show no sign of trawl's own programs begin no crawl: one from a mistake in a crawl's
            // name would never end.
            if !crawl.is_adhoc() && messages.iter().all(|message| !message.is_ours) {
                return Ok(vec![ClaimReply::Unknown; messages.len()]);
            }
            self.restore(crawl).await?;
            reply = answers(self.redis.run(&call).await?)?;
        }
        if reply.len() != messages.len() {
            return Err(corrupt("claim"));
        }
        reply.into_iter().map(|reply| read(reply).ok_or_else(|| corrupt("claim"))).collect()
    }
}

/// Returns the sender of a message, as a number for the script.
fn whose(message: &Message) -> u8 {
    match (message.is_ours, message.is_request()) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    }
}

/// The script's reply for one message: attempts, starts, deadline, and the time since when it could have been
/// claimed.
type RawReply = (i64, u32, String, String);

/// Parses the script's replies, four values each.
fn answers(answer: redis::Value) -> Result<Vec<RawReply>> {
    redis::from_redis_value(answer).map_err(|_| corrupt("claim"))
}

/// Parses a reply; `None` for one that the script never gives.
fn read((attempts, starts, instant, since): RawReply) -> Option<ClaimReply> {
    let until = || Some(UnixMs(instant.parse().ok()?));
    Some(match attempts {
        DROP => ClaimReply::Drop,
        SEND_AGAIN => ClaimReply::SendAgain,
        FULL => ClaimReply::Full,
        NO_ROOM => ClaimReply::StoreFull,
        NEWER => ClaimReply::Newer,
        PUT_ASIDE => ClaimReply::Wait { until: until()? },
        attempts => {
            let deadline = if instant == "-" { None } else { Some(until()?) };
            if let Ok(since) = since.parse().map(UnixMs) {
                metrics::claimed_after(UnixMs::now().since(since));
            }
            ClaimReply::Take { attempts: attempts.try_into().ok()?, starts, deadline }
        }
    })
}
