//! The decision which received messages a worker may handle.

use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::message::Message;
use trawl_common::metrics;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{ErrorKind, Result};
use trawl_common::time::UnixMs;

use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::wrong_type;
use crate::redis::script_calls::{batches, by_crawl, corrupt, optional};
use crate::redis::scripts::CrawlScript;
use crate::redis::scripts::codes::{reply, sender};
use crate::redis::seen::entry;

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
            let batch: Vec<&Message> = places.iter().map(|&at| &messages[at]).collect();
            let reply = self.claim_batch(worker, crawl, &batch, purpose).await;
            let reply = self.unless_wrong_type(crawl, reply).await?.unwrap_or_else(|| {
                vec![ClaimReply::Wait { until: UnixMs::now().plus(wrong_type::RETRY_DELAY) }; batch.len()]
            });
            put(&mut replies, &places, reply);
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
            put(&mut replies, places, taken_in);
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
        script: &CrawlScript,
        worker: &WorkerId,
        crawl: &CrawlRef,
        messages: &[&Message],
        (purpose, brings): (Purpose, Brings),
    ) -> Result<Vec<ClaimReply>> {
        let mut call = script.on(&CrawlKeys::new(crawl));
        call.arg(worker.as_str()).arg(optional(crawl.is_adhoc().then_some(self.again.as_millis())));
        call.arg(u8::from(purpose == Purpose::Extend));
        call.arg(self.possession().as_millis() as u64).arg(crawl.id.as_str());
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
            self.restore_crawl(crawl).await?;
            reply = answers(self.redis.run(&call).await?)?;
        }
        if reply.len() != messages.len() {
            return Err(corrupt("claim"));
        }
        reply.into_iter().map(|reply| read(reply).ok_or_else(|| corrupt("claim"))).collect()
    }
}

/// Puts the replies for some messages into their places among those for all.
fn put(replies: &mut [ClaimReply], places: &[usize], some: Vec<ClaimReply>) {
    for (&at, reply) in places.iter().zip(some) {
        replies[at] = reply;
    }
}

/// Returns the sender of a message.
fn whose(message: &Message) -> i64 {
    match (message.is_ours, message.is_request()) {
        (false, _) => sender::STRANGER,
        (true, false) => sender::OUR_URL,
        (true, true) => sender::OUR_REQUEST,
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
        reply::DROP => ClaimReply::Drop,
        reply::SEND_AGAIN => ClaimReply::SendAgain,
        reply::FULL => ClaimReply::Full,
        reply::NO_ROOM => ClaimReply::StoreFull,
        reply::NEWER => ClaimReply::Newer,
        reply::SNOOZE => ClaimReply::Wait { until: until()? },
        attempts => {
            let deadline = if instant == "-" { None } else { Some(until()?) };
            if let Ok(since) = since.parse().map(UnixMs) {
                metrics::claimed_after(UnixMs::now().since(since));
            }
            ClaimReply::Take { attempts: attempts.try_into().ok()?, starts, deadline }
        }
    })
}
