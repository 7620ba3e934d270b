//! Tasks that have ended lately.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use trawl_common::ended_tasks::{self, read_ended};
use trawl_common::logs::LogFilter;
use trawl_common::names::{CrawlId, SpiderName};
use utoipa::{IntoParams, ToSchema};

use super::logs::SEARCH_QUEUE_TIMEOUT;
use crate::Api;
use crate::cursor::{self, Limit};
use crate::extract::Params;
use crate::identity::Identity;
use crate::problem::Problem;
use crate::view::Time;

/// The filter of the list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Listing {
    /// Only those of this crawl
    #[param(value_type = Option<String>)]
    crawl: Option<CrawlId>,
    /// Only those of this spider
    #[param(value_type = Option<String>)]
    spider: Option<SpiderName>,
    /// Only the ends of the task with this key
    task: Option<String>,
    /// The maximum number of entries
    #[serde(default)]
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit,
    /// The position to continue at: `next` of the previous page
    cursor: Option<String>,
}

/// A page of ended tasks
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedTasks {
    /// The tasks, the last to end first. May be empty although others follow
    tasks: Vec<EndedTask>,
    /// The cursor of the next page; absent on the last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A task that has ended
#[derive(Serialize, ToSchema)]
struct EndedTask {
    /// Its key
    task: String,
    crawl: String,
    spider: String,
    /// `done`, `failed`, `skipped` or `expired`
    outcome: String,
    /// When it ended
    ended: Time,
    /// The seconds from its start to its end; absent if it did not start
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    seconds: Option<f64>,
    /// The worker that ended it
    worker: String,
    /// The number of attempts, including the last
    attempts: u32,
    /// The number of items that it gave
    items: u64,
    /// Why it failed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// The kind of failure, or the reason why it was skipped
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    class: Option<String>,
    /// The first 200 bytes of its recipe
    recipe: String,
    /// The length of its whole recipe in bytes
    recipe_bytes: usize,
}

impl From<ended_tasks::EndedTask> for EndedTask {
    fn from(task: ended_tasks::EndedTask) -> Self {
        Self {
            task: task.task,
            crawl: task.crawl.to_string(),
            spider: task.spider.to_string(),
            outcome: task.outcome,
            ended: task.ended.into(),
            seconds: task.seconds,
            worker: task.worker.to_string(),
            attempts: task.attempts,
            items: task.items,
            error: task.error,
            class: task.class,
            recipe: task.recipe,
            recipe_bytes: task.recipe_bytes,
        }
    }
}

/// Tasks that have ended lately, done or not; those that were cancelled are not listed. As many are kept as entries of
/// the log: `log.keep`, `log.keep_bytes`
#[utoipa::path(
    get, path = "/api/v1/tasks/ended", tag = "tasks", security(("token" = [])), params(Listing),
    responses((status = 200, body = EndedTasks))
)]
pub(crate) async fn list_ended_tasks(
    State(api): State<Arc<Api>>,
    Params(Listing { crawl, spider, task, limit, cursor }): Params<Listing>,
    identity: Identity,
) -> Result<Json<EndedTasks>, Problem> {
    let filter = LogFilter { crawl, spider, key: task, ..LogFilter::default() };
    let place = cursor::decode_log(cursor.as_deref())?;
    let _place = api.searchers.wait(&identity, SEARCH_QUEUE_TIMEOUT).await?;
    let (tasks, older) = read_ended(&*api.backend.ended_tasks, &filter, place, limit.get()).await?;
    let tasks = tasks.into_iter().map(EndedTask::from).collect();
    let next = older.map(cursor::encode_log);
    Ok(Json(EndedTasks { tasks, next }))
}
