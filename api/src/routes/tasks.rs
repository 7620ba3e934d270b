//! Tasks for the programs of spiders.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use trawl_common::frontier::Task;
use trawl_common::names::{CrawlId, ProjectName, SpiderName};
use trawl_common::ports::{NewUrl, Opening, Terms};
use trawl_common::spider::SpiderText;
use trawl_common::task::NewTask;
use trawl_common::task::submission::crawl_for;
use trawl_common::time::UnixMs;
use utoipa::{IntoParams, ToSchema};

use super::urls::{LEASE, admit};
use crate::Api;
use crate::extract::Params;
use crate::new_tasks::NewTasks;
use crate::problem::{Kind, Problem};
use crate::spiders::spider_of;

/// The keys of so many tasks are in an answer.
const MOST_KEYS: usize = 1_000;

/// Where the tasks go.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Destination {
    /// The spider whose program does them; without it, the one that the first task names
    #[param(value_type = Option<String>)]
    spider: Option<SpiderName>,
    /// The crawl to continue, or to open; without it, a new one, which is named by the time
    #[param(value_type = Option<String>)]
    crawl: Option<CrawlId>,
}

/// What became of tasks
#[derive(Serialize, ToSchema)]
pub(crate) struct Submitted {
    /// Their crawl. It ends when all that it has have ended
    #[schema(value_type = String)]
    crawl: CrawlId,
    #[schema(value_type = String)]
    spider: SpiderName,
    /// How many are new to the spider, or to the crawl if that takes in again what was done before: these are pending now
    new: u64,
    /// How many were known already
    known: u64,
    /// What names each of them, in their order; absent if there are more than 1,000
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    keys: Option<Vec<String>>,
}

/// Submits tasks to a spider with a program. When this answers, none of them can be lost; if one of them is no task, none is taken. A call
/// that may have been answered is safely made again if it names the crawl
#[utoipa::path(
    post, path = "/api/v1/tasks", tag = "tasks", security(("token" = [])), params(Destination),
    request_body(content(
        (NewTasks = "application/json"), (String = "application/x-ndjson"), (String = "application/jsonl")
    )),
    responses(
        (status = 200, body = Submitted),
        (status = 404, description = "There is no such spider"),
        (status = 409, description = "The crawl is over, has not begun, or is another spider's, or another of its spider is being fed")
    )
)]
pub(crate) async fn submit_tasks(
    State(api): State<Arc<Api>>,
    Params(Destination { spider, crawl }): Params<Destination>,
    tasks: NewTasks,
) -> Result<Json<Submitted>, Problem> {
    let (spider, tasks) = tasks.of_one_spider(spider)?;
    let tasks: Vec<Task> = tasks.into_iter().map(|new: NewTask| Task::new(&spider, new)).collect();
    let keys = (tasks.len() <= MOST_KEYS).then(|| tasks.iter().map(|task| task.key.to_string()).collect());
    let urls: Vec<NewUrl> = tasks.into_iter().map(NewUrl::task).collect();
    let stats = match &crawl {
        Some(id) if api.backend.known(id).await?.is_some() => Some(api.begun(id).await?),
        _ => None,
    };
    if let Some(stats) = stats.as_ref().filter(|stats| stats.spider != spider) {
        let detail = format!("{} is a crawl of the spider {}: name another", stats.crawl, stats.spider);
        return Err(Problem::new(Kind::Conflict, detail));
    }
    let (version, text) = api.spider_text(&ProjectName::default(), None, &spider).await?;
    let spider = spider_of(&spider, &text, stats.is_some(), &api.backend.settings);
    let spider = spider.map_err(Problem::malformed)?;
    let (crawl, is_new) = crawl_for(&spider, crawl, UnixMs::now()).map_err(Problem::malformed)?;
    let terms = match &stats {
        Some(stats) => api.backend.stats.terms(&stats.crawl_ref()).await?,
        None => Terms::of(&spider),
    };
    let text = version.map(|_| SpiderText::from(text));
    let opening = Opening { crawl: crawl.clone(), terms, text, is_new, lease: LEASE };
    let added = admit(&api, opening, stats.as_ref(), &urls).await?;
    Ok(Json(Submitted { crawl: crawl.id, spider: crawl.spider, new: added.new, known: added.known, keys }))
}
