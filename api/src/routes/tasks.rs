//! Tasks for the programs of spiders.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use trawl_common::frontier::{Task, TaskKey};
use trawl_common::names::{CrawlId, ProjectName, SpiderName};
use trawl_common::ports::{NewWork, Opening, Terms};
use trawl_common::spider::SpiderText;
use trawl_common::task::NewTask;
use trawl_common::task::report::{ListPlace, TaskPlace, TaskReader, TaskReport};
use trawl_common::task::submission::crawl_for;
use trawl_common::time::UnixMs;
use utoipa::{IntoParams, ToSchema};

use super::urls::{LEASE, admit};
use crate::Api;
use crate::cursor;
use crate::extract::{Params, Segment};
use crate::new_tasks::NewTasks;
use crate::problem::{Kind, Problem};
use crate::spiders::spider_of;

/// How long a listing looks for a task; then it says where the next one goes on.
const LONGEST: Duration = Duration::from_secs(10);

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

/// Which tasks
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
    /// Only those that are there
    #[param(value_type = Option<PlaceOfTask>, inline)]
    place: Option<TaskPlace>,
    /// Where to go on: `next` of the page before
    cursor: Option<String>,
}

/// A page of tasks
#[derive(Serialize, ToSchema)]
pub(crate) struct Tasks {
    /// In no order. One may come on two pages
    tasks: Vec<PendingTask>,
    /// The cursor of the next page, which may be empty; absent on the last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A task that is not done
#[derive(Serialize, ToSchema)]
pub(crate) struct PendingTask {
    /// Its key
    task: String,
    crawl: String,
    spider: String,
    #[schema(value_type = PlaceOfTask)]
    place: TaskPlace,
    /// Since when it waits, runs, or has failed; absent where that is not known, such as of a task that began some seconds ago
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    since: Option<String>,
    /// Until when it is put aside
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    until: Option<String>,
    /// The worker that has it
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    worker: Option<String>,
    /// How often it has failed
    attempts: u32,
    /// Why it failed for good
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// What it says; nothing if that is lost
    recipe: Option<String>,
}

/// Where a task is that is not done
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes `TaskPlace`")]
pub(crate) enum PlaceOfTask {
    Waiting,
    Running,
    Parked,
    Failed,
}

impl From<TaskReport> for PendingTask {
    fn from(report: TaskReport) -> Self {
        let TaskReport { task, crawl, spider, place, since, until, worker, attempts, error, recipe, .. } =
            report;
        Self {
            task,
            crawl: crawl.to_string(),
            spider: spider.to_string(),
            place,
            since,
            until,
            worker: worker.map(|worker| worker.to_string()),
            attempts,
            error,
            recipe: recipe.map(|recipe| recipe.to_string()),
        }
    }
}

/// Where a listing goes on: the crawl by its start and its id, and the place in its list.
type Onward = (u64, CrawlId, ListPlace);

/// Tasks that are not done: those that wait, run or are put aside, and those that failed
#[utoipa::path(
    get, path = "/api/v1/tasks", tag = "tasks", security(("token" = [])), params(Listing),
    responses((status = 200, body = Tasks), (status = 404, description = "There is no such crawl"))
)]
pub(crate) async fn list_tasks(
    State(api): State<Arc<Api>>,
    Params(Listing { crawl, spider, place, cursor }): Params<Listing>,
) -> Result<Json<Tasks>, Problem> {
    let from: Option<Onward> = cursor.as_deref().map(cursor::decode).transpose()?;
    let mut crawls = match crawl {
        Some(id) => vec![api.known(&id).await?.stats],
        None => api.backend.stats.crawls().await?,
    };
    crawls.retain(|stats| spider.as_ref().is_none_or(|spider| *spider == stats.spider));
    crawls.sort_by(|one, other| (one.started, &one.crawl).cmp(&(other.started, &other.crawl)));
    let mut at = ListPlace::default();
    if let Some((started, id, place)) = from {
        crawls.retain(|stats| (stats.started.0, &stats.crawl) <= (started, &id));
        at = crawls.last().filter(|next| next.crawl == id).map_or(at, |_| place);
    }
    let reader = TaskReader { stats: &*api.backend.stats, control: &*api.backend.control };
    let until = Instant::now() + LONGEST;
    let mut found = Vec::new();
    while let Some(stats) = crawls.last() {
        let (reports, next) = reader.page(&stats.crawl_ref(), at, place).await?;
        found.extend(reports.into_iter().map(PendingTask::from));
        at = next.unwrap_or_default();
        if next.is_none() {
            crawls.pop();
        }
        if !found.is_empty() || Instant::now() >= until {
            break;
        }
    }
    let next = crawls.last().map(|stats| cursor::encode(&(stats.started.0, stats.crawl.clone(), at)));
    Ok(Json(Tasks { tasks: found, next }))
}

/// One task that is not done: of the newest crawl that knows it
#[utoipa::path(
    get, path = "/api/v1/tasks/{task}", tag = "tasks", security(("token" = [])),
    params(("task" = String, Path, description = "Its key: `task:` and 32 hexadecimal digits")),
    responses((status = 200, body = PendingTask), (status = 404, description = "It is neither pending nor failed in any crawl"))
)]
pub(crate) async fn get_task(
    State(api): State<Arc<Api>>,
    Segment(task): Segment<String>,
) -> Result<Json<PendingTask>, Problem> {
    let task: TaskKey = task.parse().map_err(|error| Problem::not_found(format!("{task}: {error}")))?;
    let reader = TaskReader { stats: &*api.backend.stats, control: &*api.backend.control };
    for stats in api.backend.stats.crawls().await? {
        if let Some(report) = reader.one(&stats.crawl_ref(), &task).await? {
            return Ok(Json(report.into()));
        }
    }
    Err(Problem::not_found(format!("{task} is neither pending nor failed in any crawl")))
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
    let urls: Vec<NewWork> = tasks.into_iter().map(NewWork::task).collect();
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
