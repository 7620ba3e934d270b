//! Tasks that have ended lately, for people: the list of both the commands and the HTTP API.

use serde::Serialize;

use crate::fleet_log::{LogPage, newest};
use crate::logs::{LogEntry, LogFilter};
use crate::names::{CrawlId, SpiderName, WorkerId};
use crate::ports::{LogPlace, Logs, Result};
use crate::time::{UnixMs, as_rfc_3339};

/// A task that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedTask {
    /// Its key.
    pub task: String,
    /// Its crawl.
    pub crawl: CrawlId,
    /// Its spider.
    pub spider: SpiderName,
    /// Its final state: `done`, `failed`, `skipped` or `expired`.
    pub outcome: String,
    /// The time of its end.
    #[serde(with = "as_rfc_3339")]
    pub ended: UnixMs,
    /// The seconds from its start to its end; unknown if it did not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The worker that ended it.
    pub worker: WorkerId,
    /// The number of attempts, including the last.
    pub attempts: u32,
    /// The number of items that it gave.
    pub items: u64,
    /// The reason why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of failure, or the reason why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The beginning of its recipe.
    pub recipe: String,
    /// The length of its recipe in bytes.
    pub recipe_bytes: usize,
}

/// Returns at most `most` ended tasks that pass the filter before a position, the last first; and the position from
/// which to read older ones, if there may be any. Fewer may come although others follow.
pub async fn read_ended(
    list: &dyn Logs,
    filter: &LogFilter,
    before: LogPlace,
    most: usize,
) -> Result<(Vec<EndedTask>, Option<LogPlace>)> {
    let LogPage { lines, older, .. } = newest(list, filter, before, most).await?;
    Ok((lines.into_iter().filter_map(|line| EndedTask::from_entry(line.entry)).collect(), older))
}

impl EndedTask {
    /// Returns the task of an entry; `None` for an entry that is about no task.
    fn from_entry(entry: LogEntry) -> Option<Self> {
        let LogEntry { time, worker, spider, crawl, key, class, message, ended, .. } = entry;
        let ended = ended?;
        let error = message.as_str();
        Some(Self {
            task: key?,
            crawl: crawl?,
            spider: spider?,
            outcome: ended.outcome,
            ended: time,
            seconds: ended.took_ms.map(|ms| ms as f64 / 1000.0),
            worker,
            attempts: ended.attempts,
            items: ended.items,
            error: (!error.is_empty()).then(|| error.to_owned()),
            class,
            recipe: ended.recipe,
            recipe_bytes: ended.recipe_bytes,
        })
    }
}
