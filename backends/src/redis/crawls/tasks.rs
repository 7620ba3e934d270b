//! The tasks of a crawl that have no final state, for listing and cancelling.

use trawl_common::frontier::{State, TaskKey};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{PendingTask, Result, TaskPage};
use trawl_common::time::UnixMs;

use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;
use crate::redis::script_calls::{BATCH, corrupt};
use crate::redis::seen::entry;

/// Approximate number of records examined for a part.
const MAX_EXAMINED: u32 = 500;

impl RedisRecords {
    pub(crate) async fn list_tasks(&self, crawl: &CrawlRef, cursor: u64) -> Result<TaskPage> {
        let mut call = self.scripts.tasks.on(&CrawlKeys::new(crawl));
        let reply: Result<Vec<String>> = self.redis.run(call.arg(cursor).arg(MAX_EXAMINED)).await;
        match self.unless_wrong_type(crawl, reply).await? {
            Some(reply) => page(&reply).ok_or_else(|| corrupt("tasks")),
            None => Ok(TaskPage::default()),
        }
    }

    pub(crate) async fn cancel_each(&self, crawl: &CrawlRef, keys: &[TaskKey]) -> Result<u64> {
        let of = CrawlKeys::new(crawl);
        let mut cancelled = 0;
        for batch in keys.chunks(BATCH) {
            let mut call = self.scripts.cancel_tasks.on(&of);
            call.arg(crawl.id.as_str()).arg(u8::from(crawl.is_adhoc()));
            for key in batch {
                entry(&mut call, key.as_str());
            }
            cancelled += self.redis.run::<u64>(&call).await?;
        }
        Ok(cancelled)
    }
}

/// Parses a reply; `None` for one that the script never gives.
fn page(reply: &[String]) -> Option<TaskPage> {
    let (next, tasks) = reply.split_first()?;
    let next: u64 = next.parse().ok()?;
    let tasks = tasks.chunks_exact(5).map(task).collect::<Option<Vec<_>>>()?;
    // A key that somebody else wrote there is no task.
    Some(TaskPage { tasks: tasks.into_iter().flatten().collect(), next: (next > 0).then_some(next) })
}

fn task(fields: &[String]) -> Option<Option<PendingTask>> {
    let [key, state, since, holder, attempts] = fields else { return None };
    let Ok(key) = key.parse::<TaskKey>() else { return Some(None) };
    let since = UnixMs(since.parse().ok()?);
    let state = match state.as_str() {
        "n" => State::New { since },
        "q" => State::Queued { since },
        // Shown as queued to people: it waits for its crawl to be resumed.
        "p" if holder != "-" => State::Queued { since: UnixMs(0) },
        "p" => State::Parked { until: since, unconfirmed: None, in_pause: false },
        started => State::Held { by: holder.parse().ok()?, since, has_started: started == "f" },
    };
    Some(Some(PendingTask { key, state, attempts: attempts.parse().ok()? }))
}
