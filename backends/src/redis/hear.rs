//! Hearing: which of the messages that a worker has received are its to handle.

use redis::Script;
use trawl_common::frontier::Heard;
use trawl_common::frontier::message::Message;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{ErrorKind, Result};
use trawl_common::time::UnixMs;

use super::RedisRecords;
use super::foreign;
use super::keys::CrawlKeys;
use super::script_calls::{BATCH, by_crawl, corrupt, optional};
use super::seen::{entry, seen_keys};

/// What the script says of a message that is to be forgotten.
const DROP: i64 = -1;
/// What it says of one that is to go round once more.
const SEND_AGAIN: i64 = -2;
/// What it says of one whose URL is in other hands, whose crawl is paused, or that comes before its time.
const PUT_ASIDE: i64 = -3;
/// What it says of one whose crawl has done all that it may.
const FULL: i64 = -5;
/// What it says of one without a record when there is no room for it.
const NO_ROOM: i64 = -6;

/// Why messages are heard.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ear {
    /// They have just arrived.
    Fresh,
    /// They arrived earlier, and are still in hand.
    Keeping,
}

impl RedisRecords {
    pub(super) async fn hear_all(
        &self,
        worker: &WorkerId,
        messages: &[Message],
        ear: Ear,
    ) -> Result<Vec<Heard>> {
        let mut heard = vec![Heard::Drop; messages.len()];
        for (crawl, places) in by_crawl(messages, |message| &message.crawl) {
            for places in places.chunks(BATCH) {
                let batch: Vec<&Message> = places.iter().map(|&at| &messages[at]).collect();
                let reply = self.hear_batch(worker, crawl, &batch, ear).await;
                let reply = self.unless_foreign(crawl, reply).await?.unwrap_or_else(|| {
                    vec![Heard::Wait { until: UnixMs::now().plus(foreign::WAIT) }; batch.len()]
                });
                for (&at, reply) in places.iter().zip(reply) {
                    heard[at] = reply;
                }
            }
        }
        Ok(heard)
    }

    async fn hear_batch(
        &self,
        worker: &WorkerId,
        crawl: &CrawlRef,
        messages: &[&Message],
        ear: Ear,
    ) -> Result<Vec<Heard>> {
        if !self.index_now_and_then(crawl).await? {
            return Ok(vec![Heard::Unknown; messages.len()]);
        }
        match ear {
            Ear::Keeping => self.hear_by(&self.scripts.keep, worker, crawl, messages, ear).await,
            Ear::Fresh => match self.hear_by(&self.scripts.hear, worker, crawl, messages, ear).await {
                Err(error) if error.kind == ErrorKind::Full => {
                    self.hear_by(&self.scripts.hear_known, worker, crawl, messages, ear).await
                }
                reply => reply,
            },
        }
    }

    async fn hear_by(
        &self,
        script: &Script,
        worker: &WorkerId,
        crawl: &CrawlRef,
        messages: &[&Message],
        ear: Ear,
    ) -> Result<Vec<Heard>> {
        let keys = CrawlKeys::new(crawl);
        let mut call = script.prepare_invoke();
        call.key(&keys.crawl);
        seen_keys(&mut call, &keys);
        call.key(&keys.pending).key(&keys.hosts);
        call.arg(worker.as_str()).arg(optional(crawl.is_adhoc().then_some(self.again.as_millis())));
        call.arg(u8::from(ear == Ear::Keeping));
        call.arg(self.possession().as_millis() as u64);
        for message in messages {
            entry(&mut call, message.url.as_str());
            call.arg(message.lane.as_str()).arg(message.depth);
            call.arg(optional(message.deadline.map(|deadline| deadline.0)));
            call.arg(optional(message.referrer.as_ref())).arg(whose(message));
            call.arg(optional(message.wake.map(|wake| wake.0)));
        }
        let mut reply = triples(self.run(&call).await?)?;
        if reply.is_empty() {
            // What shows no sign of trawl's own programs begins no crawl: a mistake in a crawl's name would never end.
            if !crawl.is_adhoc() && messages.iter().all(|message| !message.is_ours) {
                return Ok(vec![Heard::Unknown; messages.len()]);
            }
            self.restore(crawl).await?;
            reply = triples(self.run(&call).await?)?;
        }
        if reply.len() != messages.len() {
            return Err(corrupt("hear"));
        }
        reply.into_iter().map(|reply| heard(reply).ok_or_else(|| corrupt("hear"))).collect()
    }
}

/// Whose message it is, as the script is told.
fn whose(message: &Message) -> u8 {
    match (message.is_ours, message.is_request()) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    }
}

/// What is said of one message: attempts, starts, deadline.
type Told = (i64, u32, String);

/// The answer in threes.
fn triples(answer: redis::Value) -> Result<Vec<Told>> {
    redis::from_redis_value(answer).map_err(|_| corrupt("hear"))
}

/// `None` if the script says what it never does.
fn heard((attempts, starts, instant): Told) -> Option<Heard> {
    let until = || Some(UnixMs(instant.parse().ok()?));
    Some(match attempts {
        DROP => Heard::Drop,
        SEND_AGAIN => Heard::SendAgain,
        FULL => Heard::Full,
        NO_ROOM => Heard::NoRoom,
        PUT_ASIDE => Heard::Wait { until: until()? },
        attempts => {
            let deadline = if instant == "-" { None } else { Some(until()?) };
            Heard::Take { attempts: attempts.try_into().ok()?, starts, deadline }
        }
    })
}
