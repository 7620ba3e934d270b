//! Tasks that begin before others of their spider, whichever message comes first (`claim/urgent.lua`).

use redis::{FromRedisValue, Value};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{MAX_STARTS, Start};
use trawl_common::metrics;
use trawl_common::names::{CrawlId, CrawlRef, WorkerId};
use trawl_common::ports::{Claim, Error, ErrorKind, Result};
use trawl_common::time::UnixMs;
use trawl_engine::{Records, TaskStart, Urgent};

use crate::redis::RedisRecords;
use crate::redis::frontier::start_of;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::sweep::lost_message;
use crate::redis::script_calls::{BATCH, by_crawl, corrupt};

/// Number of values that a script returns for an urgent task beyond those of any message: crawl, attempts, starts,
/// and the time since when it has waited.
const ABOUT_CLAIM: usize = 4;

impl RedisRecords {
    pub(crate) async fn start_one(&self, worker: &WorkerId, task: &Message) -> Result<TaskStart> {
        let keys = CrawlKeys::new(&task.crawl);
        let mut call = self.scripts.start_task.prepare_invoke();
        call.key(&keys.pending).key(&keys.crawl).key(&keys.begun).key(&keys.urgent);
        call.arg(worker.as_str()).arg(MAX_STARTS).arg(task.work.as_str()).arg(task.work.priority().get());
        loop {
            let reply: Result<Value> = self.redis.run(&call).await;
            let Some(reply) = self.unless_foreign(&task.crawl, reply).await? else {
                return Ok(TaskStart::This(Start::Lost));
            };
            match read(&task.crawl, &reply).ok_or_else(|| corrupt("start_task"))? {
                Reply::Start(start) => return Ok(TaskStart::This(start)),
                Reply::Urgent(urgent) => return Ok(TaskStart::Behind(Box::new(urgent))),
                Reply::Unreadable { crawl, key } => self.quarantine(&crawl, &[key]).await?,
                Reply::Unsure => {
                    self.obey(&task.crawl).await?;
                    let claim = Claim { crawl: task.crawl.clone(), key: task.key() };
                    self.release(worker, &[claim]).await?;
                    return Ok(TaskStart::This(Start::Lost));
                }
            }
        }
    }

    /// On a full server nothing is listed: unlisted tasks come with their messages.
    pub(crate) async fn list_all_urgent(&self, tasks: &[&Message]) -> Result<()> {
        for (crawl, places) in by_crawl(tasks, |task| &task.crawl) {
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.list_urgent.key(CrawlKeys::new(crawl).urgent);
                call.arg(crawl.id.as_str());
                for &at in places {
                    call.arg(tasks[at].work.as_str()).arg(-tasks[at].work.priority().get());
                }
                match self.unless_foreign::<()>(crawl, self.redis.run(&call).await).await {
                    Err(Error { kind: ErrorKind::Full, .. }) => {}
                    listed => drop(listed?),
                }
            }
        }
        Ok(())
    }
}

/// The script's reply.
enum Reply {
    Start(Start),
    Urgent(Urgent),
    /// The payload of an urgent task cannot be read.
    Unreadable {
        crawl: CrawlRef,
        key: Vec<u8>,
    },
    /// A command for the crawl may be lost.
    Unsure,
}

/// Parses a reply; `None` for one that the script never gives. All urgent tasks are of the spider of `crawl`.
fn read(crawl: &CrawlRef, reply: &Value) -> Option<Reply> {
    if let Ok([start]) = <[u8; 1]>::from_redis_value_ref(reply) {
        return start_of(start).map(Reply::Start);
    }
    let parts = Vec::<Vec<u8>>::from_redis_value_ref(reply).ok()?;
    if parts.is_empty() {
        return Some(Reply::Unsure);
    }
    let (claim, sent) = parts.split_at_checked(ABOUT_CLAIM)?;
    let text = |at: usize| str::from_utf8(&claim[at]).ok();
    let id: CrawlId = text(0)?.parse().ok()?;
    let (attempts, starts) = (text(1)?.parse().ok()?, text(2)?.parse().ok()?);
    let since: u64 = text(3)?.parse().ok()?;
    let crawl = CrawlRef { id, spider: crawl.spider.clone() };
    Some(match lost_message(&crawl, sent) {
        Some(message) => {
            if since > 0 {
                metrics::claimed_after(UnixMs::now().since(UnixMs(since)));
            }
            Reply::Urgent(Urgent { message, attempts, starts })
        }
        None => Reply::Unreadable { crawl, key: sent.first()?.clone() },
    })
}
