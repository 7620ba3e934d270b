//! Claims: which worker holds a URL or a task, and which of them start.

mod messages;
mod urgent;

use async_trait::async_trait;
use redis::Value;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{ClaimReply, MAX_STARTS, StartReply};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Claim, Result, one_each};
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Claims, Settlements, TaskStart};

use crate::redis::RedisRecords;
use crate::redis::claim::messages::Purpose;
use crate::redis::claim::urgent::Reply;
use crate::redis::keys::CrawlKeys;
use crate::redis::script_calls::{by_crawl, corrupt};
use crate::redis::scripts::codes::start;
use crate::redis::seen::entry;

#[async_trait]
impl Claims for RedisRecords {
    async fn claim(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<ClaimReply>> {
        self.claim_all(worker, messages, Purpose::Claim).await
    }

    async fn extend(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<bool>> {
        let reply = self.claim_all(worker, messages, Purpose::Extend).await?;
        Ok(reply.into_iter().map(|reply| matches!(reply, ClaimReply::Take { .. })).collect())
    }

    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<StartReply>> {
        let mut starts = vec![StartReply::Lost; claims.len()];
        for (crawl, places) in by_crawl(claims, |claim| &claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            let mut call = self.scripts.start.on(&keys);
            call.arg(worker.as_str()).arg(MAX_STARTS);
            for &at in &places {
                call.arg(claims[at].key.as_str());
            }
            let answer: Option<Vec<i64>> = self.unless_wrong_type(crawl, self.redis.run(&call).await).await?;
            let Some(answer) = answer else { continue };
            if answer.is_empty() {
                self.obey(crawl).await?;
                // They are requeued: their hosts may be blocked, and the check must not be bypassed.
                let claims: Vec<Claim> = places.iter().map(|&at| claims[at].clone()).collect();
                self.release(worker, &claims).await?;
                continue;
            }
            for (&at, reply) in places.iter().zip(one_each(answer, places.len(), "starts")?) {
                starts[at] = start_of(reply).ok_or_else(|| corrupt("start"))?;
            }
        }
        Ok(starts)
    }

    async fn start_task(&self, worker: &WorkerId, task: &Message) -> Result<TaskStart> {
        let keys = CrawlKeys::new(&task.crawl);
        let mut call = self.scripts.start_task.on(&keys);
        call.arg(worker.as_str()).arg(MAX_STARTS).arg(task.work.as_str()).arg(task.work.priority().get());
        loop {
            let reply: Result<Value> = self.redis.run(&call).await;
            let Some(reply) = self.unless_wrong_type(&task.crawl, reply).await? else {
                return Ok(TaskStart::This(StartReply::Lost));
            };
            match Reply::read(&task.crawl, &reply).ok_or_else(|| corrupt("start_task"))? {
                Reply::Start(start) => return Ok(TaskStart::This(start)),
                Reply::Urgent(urgent) => return Ok(TaskStart::Behind(Box::new(urgent))),
                Reply::Unreadable { crawl, key } => self.quarantine(&crawl, &[key]).await?,
                Reply::Unsure => {
                    self.obey(&task.crawl).await?;
                    let claim = Claim { crawl: task.crawl.clone(), key: task.key() };
                    self.release(worker, &[claim]).await?;
                    return Ok(TaskStart::This(StartReply::Lost));
                }
            }
        }
    }

    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool> {
        let mut call = self.scripts.has_seen.on(&CrawlKeys::new(crawl));
        entry(&mut call, url.as_str());
        self.redis.run(&call).await
    }
}

/// Decodes the reply of scripts to a start; `None` for an unknown one.
fn start_of(reply: i64) -> Option<StartReply> {
    Some(match reply {
        start::LOST => StartReply::Lost,
        start::GO => StartReply::Go,
        start::POISON => StartReply::Poison,
        start::LIMIT => StartReply::Full,
        start::AWAITED => StartReply::Awaited,
        _ => return None,
    })
}
