//! The sweep: records that were lost from sight become new again, and their messages are sent once more.

use std::collections::HashSet;
use std::time::Duration;

use trawl_common::crawl::CrawlState;
use trawl_common::lane::Lane;
use trawl_common::message::Message;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

use super::RedisFrontier;
use super::frontier::corrupt;
use super::keys::{self, CrawlKeys};

/// How long a record may be unconfirmed, or a parked one overdue, before it counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(60);
/// How often one process of the fleet looks.
const EVERY: Duration = Duration::from_secs(30);

impl RedisFrontier {
    /// Looks through the records of every running crawl, if it is this process's turn.
    pub(super) async fn sweep_all(&self, worker: &WorkerId) -> Result<Vec<Message>> {
        let mut lease = redis::cmd("SET");
        lease.arg(keys::SWEEPER).arg(worker.as_str()).arg("NX").arg("PX").arg(EVERY.as_millis() as u64);
        let mine: Option<String> = self.query(&lease).await?;
        if mine.is_none() {
            return Ok(Vec::new());
        }
        let live = self.live_workers().await?;
        let mut lost = Vec::new();
        for crawl in self.all_crawls().await? {
            let status = redis::cmd("HGET").arg(CrawlKeys::new(&crawl).crawl).arg("status").to_owned();
            let status: Option<String> = self.query(&status).await?;
            if status.as_deref() == Some(CrawlState::Running.as_str()) {
                lost.extend(self.sweep_crawl(&crawl, &live).await?);
            }
        }
        Ok(lost)
    }

    async fn sweep_crawl(&self, crawl: &CrawlRef, live: &[String]) -> Result<Vec<Message>> {
        let keys = CrawlKeys::new(crawl);
        let mut lost = Vec::new();
        let mut cursor = "0".to_owned();
        loop {
            let mut call = self.scripts.sweep.prepare_invoke();
            call.key(&keys.crawl).key(&keys.pending).key(&keys.outbox).key(&keys.lease);
            call.arg(crawl.id.as_str()).arg(&cursor).arg(LOST_AFTER.as_millis() as u64);
            for worker in live {
                call.arg(worker);
            }
            let answer: Vec<String> = self.run(&call).await?;
            let Some((next, records)) = answer.split_first() else { return Err(corrupt("sweep")) };
            lost.extend(records.chunks_exact(5).filter_map(|record| lost_message(crawl, record)));
            if next == "0" {
                return Ok(lost);
            }
            cursor.clone_from(next);
        }
    }

    async fn live_workers(&self) -> Result<Vec<String>> {
        let known: Vec<String> = self.query(redis::cmd("ZRANGE").arg(keys::WORKERS).arg(0).arg(-1)).await?;
        let dead = self.lapsed(known.iter().cloned().collect()).await?;
        if !dead.is_empty() {
            let mut forget = redis::cmd("ZREM");
            forget.arg(keys::WORKERS);
            for worker in &dead {
                forget.arg(worker);
            }
            let _: u64 = self.query(&forget).await?;
        }
        Ok(known.into_iter().filter(|worker| !dead.contains(worker)).collect())
    }

    /// Which of these workers have let their heartbeat lapse.
    pub(super) async fn lapsed(&self, workers: HashSet<String>) -> Result<HashSet<String>> {
        let mut dead = HashSet::new();
        for name in workers {
            let Ok(id) = name.parse::<WorkerId>() else { continue };
            let alive: bool = self.query(redis::cmd("EXISTS").arg(keys::worker(&id))).await?;
            if !alive {
                dead.insert(name);
            }
        }
        Ok(dead)
    }
}

fn lost_message(crawl: &CrawlRef, record: &[String]) -> Option<Message> {
    let [url, lane, depth, deadline, referrer] = record else { return None };
    Some(Message {
        url: url.parse().ok()?,
        crawl: crawl.clone(),
        lane: lane.parse::<Lane>().unwrap_or_default(),
        depth: depth.parse().unwrap_or_default(),
        deadline: deadline.parse().ok().map(UnixMs),
        until: None,
        slot: None,
        referrer: referrer.parse().ok(),
    })
}
