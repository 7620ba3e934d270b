//! Tasks for the programs of spiders.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use trawl_common::cancel;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::{Task, TaskKey};
use trawl_common::json_object::MAX_RETRIES;
use trawl_common::names::{CrawlId, CrawlRef, ProjectName, SpiderName};
use trawl_common::ports::{NewWork, Opening, Terms};
use trawl_common::priority::Priority;
use trawl_common::spider::{Judging, SpiderText, crawl_for};
use trawl_common::task::NewTask;
use trawl_common::task_report::{ListPlace, TaskPlace, TaskReader, TaskReport};
use trawl_common::text::start_of;
use trawl_common::time::UnixMs;
use utoipa::{IntoParams, ToSchema};

use super::urls::{Added, LEASE, admit};
use crate::Api;
use crate::cursor;
use crate::extract::{self, Params, Segment};
use crate::new_tasks::NewTasks;
use crate::problem::{Kind, Problem};
use crate::spiders::spider_of;

/// Maximum time that a listing searches for a task; then it returns a cursor.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of tasks that are cancelled by their keys in one request.
const MAX_CANCELLED: usize = 10_000;

/// Maximum number of tasks whose keys are in a response.
const MAX_KEYS: usize = 1_000;

/// The destination of the tasks.
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
    /// How urgent those are that do not say so: the highest come first
    #[param(value_type = Option<f64>)]
    priority: Option<Priority>,
    /// How often those are tried again that do not say so; as their spider says without it
    #[param(maximum = 1_000_000)]
    retries: Option<u32>,
}

/// The tasks that were submitted
#[derive(Serialize, ToSchema)]
pub(crate) struct Submitted {
    /// Their crawl. It ends when all that it has have ended
    #[schema(value_type = String)]
    crawl: CrawlId,
    #[schema(value_type = String)]
    spider: SpiderName,
    /// How many are new to the spider, or to the crawl if that takes in again what was done before: these are pending
    /// now
    new: u64,
    /// How many were known already
    known: u64,
    /// Their keys, in the order of the request; absent if there are more than 1,000
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
    /// Only those that are there. Those that run are in one page, as workers said with their last heartbeat: of each
    /// worker 200 at most
    #[param(value_type = Option<PlaceOfTask>, inline)]
    place: Option<TaskPlace>,
    /// Maximum number of bytes of each recipe; unlimited if absent
    recipe_bytes: Option<usize>,
    /// The position to continue at: `next` of the previous page
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
    /// Since when it waits, runs, or has failed; absent where that is not known, such as of a task that began some
    /// seconds ago
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    since: Option<String>,
    /// Until when it is put aside
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    until: Option<String>,
    /// Why it is put aside, as far as that is known; only of one task that is asked for
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    why: Option<String>,
    /// The worker that has it, or that gave up on it
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    worker: Option<String>,
    /// How often it has failed
    attempts: u32,
    /// Why it failed for good
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// The page or the task that asked for it, as far as that is known: of one that failed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    referrer: Option<String>,
    /// The recipe; `null` if it is lost
    recipe: Option<String>,
    /// How long its recipe is, of which a list may have less
    recipe_bytes: usize,
    /// Its identity: of tasks with the same one, one is done; absent if that is its recipe
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    unique: Option<String>,
    /// The highest comes first
    priority: f64,
    /// How often it is tried again; absent if that is as its spider says
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    retries: Option<u32>,
}

/// The state of a task that is not done
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
        let TaskReport {
            task,
            crawl,
            spider,
            place,
            since,
            until,
            why,
            worker,
            attempts,
            error,
            referrer,
            recipe,
            says,
        } = report;
        let says = says.as_ref();
        Self {
            task,
            crawl: crawl.to_string(),
            spider: spider.to_string(),
            place,
            since,
            until,
            why,
            worker: worker.map(|worker| worker.to_string()),
            attempts,
            error,
            referrer: referrer.map(|referrer| referrer.to_string()),
            recipe_bytes: recipe.as_ref().map_or(0, |recipe| recipe.as_str().len()),
            recipe: recipe.map(|recipe| recipe.to_string()),
            unique: says.and_then(|new| new.unique.as_ref()).map(ToString::to_string),
            priority: says.map_or(0.0, |new| new.priority.get()),
            retries: says.and_then(|new| new.retries),
        }
    }
}

impl PendingTask {
    /// Cuts the recipe to `most` bytes.
    fn shortened(self, most: Option<usize>) -> Self {
        let cut = |mut recipe: String| {
            recipe.truncate(start_of(&recipe, most.unwrap_or(usize::MAX)).len());
            recipe
        };
        Self { recipe: self.recipe.map(cut), ..self }
    }
}

/// The cursor of a listing: the crawl by its start and its id, and the position in its list.
type Onward = (u64, CrawlId, ListPlace);

/// Tasks that are not done: those that wait, run or are put aside, and those that failed
#[utoipa::path(
    get, path = "/api/v1/tasks", tag = "tasks", security(("token" = [])), params(Listing),
    responses((status = 200, body = Tasks), (status = 404, description = "There is no such crawl"))
)]
pub(crate) async fn list_tasks(
    State(api): State<Arc<Api>>,
    Params(Listing { crawl, spider, place, recipe_bytes, cursor }): Params<Listing>,
) -> Result<Json<Tasks>, Problem> {
    let from: Option<Onward> = cursor.as_deref().map(cursor::decode).transpose()?;
    let mut crawls = api.crawls_of(crawl).await?;
    crawls.retain(|stats| spider.as_ref().is_none_or(|spider| *spider == stats.spider));
    crawls.sort_by(|one, other| (one.started, &one.crawl).cmp(&(other.started, &other.crawl)));
    let mut at = ListPlace::default();
    if let Some((started, id, place)) = from {
        crawls.retain(|stats| (stats.started.0, &stats.crawl) <= (started, &id));
        at = crawls.last().filter(|next| next.crawl == id).map_or(at, |_| place);
    }
    let reader = TaskReader { stats: &*api.backend.stats, control: &*api.backend.control };
    let shown = |report: TaskReport| PendingTask::from(report).shortened(recipe_bytes);
    if place == Some(TaskPlace::Running) {
        let going: Vec<_> =
            crawls.iter().filter(|stats| stats.pending > 0).map(CrawlStats::crawl_ref).collect();
        let tasks = reader.running(&going).await?.into_iter().map(shown).collect();
        return Ok(Json(Tasks { tasks, next: None }));
    }
    let until = Instant::now() + SEARCH_TIMEOUT;
    let mut found = Vec::new();
    while let Some(stats) = crawls.last() {
        let (reports, next) = reader.page(&stats.crawl_ref(), at, place).await?;
        found.extend(reports.into_iter().map(shown));
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

/// Of which crawl a task is.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfCrawl {
    /// Only as this crawl knows it
    #[param(value_type = Option<String>)]
    crawl: Option<CrawlId>,
}

/// One task that is not done: of the newest crawl that knows it, or of the one that is named
#[utoipa::path(
    get, path = "/api/v1/tasks/{task}", tag = "tasks", security(("token" = [])),
    params(("task" = String, Path, description = "Its key: `task:` and 32 hexadecimal digits"), OfCrawl),
    responses((status = 200, body = PendingTask), (status = 404, description = "It is neither pending nor failed in any crawl"))
)]
pub(crate) async fn get_task(
    State(api): State<Arc<Api>>,
    Segment(task): Segment<String>,
    Params(OfCrawl { crawl }): Params<OfCrawl>,
) -> Result<Json<PendingTask>, Problem> {
    let task: TaskKey = task.parse().map_err(|error| Problem::not_found(format!("{task}: {error}")))?;
    let reader = TaskReader { stats: &*api.backend.stats, control: &*api.backend.control };
    for stats in api.crawls_of(crawl).await? {
        if let Some(report) = reader.one(&stats.crawl_ref(), &task).await? {
            return Ok(Json(report.into()));
        }
    }
    Err(Problem::not_found(format!("{task} is neither pending nor failed in any crawl")))
}

impl Api {
    /// Returns the selected crawl, or all known ones, newest first.
    async fn crawls_of(&self, named: Option<CrawlId>) -> Result<Vec<CrawlStats>, Problem> {
        match named {
            Some(id) => Ok(vec![self.known(&id).await?.stats]),
            None => Ok(self.backend.stats.crawls().await?),
        }
    }
}

/// Which tasks to cancel: those that are named, wherever they are, or all of a crawl that wait or run
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToCancel {
    /// Their keys, at most 10,000; all of the crawl without them
    #[schema(min_items = 1, max_items = 10_000)]
    tasks: Option<Vec<String>>,
    /// Only those of this crawl
    #[schema(value_type = Option<String>)]
    crawl: Option<CrawlId>,
    /// The position to continue at: `next` of the previous answer
    cursor: Option<String>,
}

/// The tasks that were cancelled
#[derive(Serialize, ToSchema)]
pub(crate) struct CancelledTasks {
    /// How many
    cancelled: u64,
    /// There is more to do: repeat the request with this `cursor`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// Ends tasks that wait or run: their programs are ended within some seconds, and their crawls go on
#[utoipa::path(
    post, path = "/api/v1/tasks/cancel", tag = "tasks", security(("token" = [])), request_body = ToCancel,
    responses(
        (status = 200, body = CancelledTasks), (status = 404, description = "There is no such crawl")
    )
)]
pub(crate) async fn cancel_tasks(
    State(api): State<Arc<Api>>,
    extract::Json(ToCancel { tasks, crawl, cursor }): extract::Json<ToCancel>,
) -> Result<Json<CancelledTasks>, Problem> {
    let control = &*api.backend.control;
    match (tasks, crawl) {
        (Some(tasks), crawl) if (1..=MAX_CANCELLED).contains(&tasks.len()) => {
            let key = |task: &String| {
                task.parse().map_err(|error| Problem::malformed(format_args!("tasks: {error}")))
            };
            let tasks = tasks.iter().map(key).collect::<Result<Vec<TaskKey>, _>>()?;
            let mut cancelled = 0;
            for stats in api.crawls_of(crawl).await? {
                cancelled += cancel::cancel_tasks(&stats.crawl_ref(), &tasks, control).await?;
            }
            Ok(Json(CancelledTasks { cancelled, next: None }))
        }
        (Some(_), _) => Err(Problem::malformed(format_args!("tasks: 1 to {MAX_CANCELLED} at a time"))),
        (None, Some(id)) => {
            let crawl = api.known(&id).await?.stats.crawl_ref();
            let from = cursor.as_deref().map(cursor::decode).transpose()?;
            let (cancelled, next) = cancel_all(&api, &crawl, from.unwrap_or_default()).await?;
            Ok(Json(CancelledTasks { cancelled, next: next.as_ref().map(cursor::encode) }))
        }
        (None, None) => Err(Problem::malformed("say which `tasks`, or of which `crawl`")),
    }
}

/// Cancels the tasks of a crawl from a position in its list on, for as long as one request may take. Returns the
/// number, and the position to continue from.
async fn cancel_all(api: &Api, crawl: &CrawlRef, mut at: u64) -> Result<(u64, Option<u64>), Problem> {
    let until = Instant::now() + SEARCH_TIMEOUT;
    let mut cancelled = 0;
    loop {
        let page = api.backend.stats.tasks(crawl, at).await?;
        let keys: Vec<TaskKey> = page.tasks.into_iter().map(|task| task.key).collect();
        cancelled += api.backend.control.cancel_tasks(crawl, &keys).await?;
        match page.next {
            Some(next) if Instant::now() < until => at = next,
            next => {
                api.backend.control.await_durable(crawl).await?;
                return Ok((cancelled, next));
            }
        }
    }
}

/// Submits tasks to a spider with a program. When this answers, none of them can be lost; if one of them is no task,
/// none is taken. A call that may have been answered is safely made again if it names the crawl
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
    Params(Destination { spider, crawl, priority, retries }): Params<Destination>,
    tasks: NewTasks,
) -> Result<Json<Submitted>, Problem> {
    let (spider, tasks) = tasks.of_one_spider(spider)?;
    if let Some(retries) = retries.filter(|retries| *retries > MAX_RETRIES) {
        return Err(Problem::malformed(format_args!("retries: 0 to {MAX_RETRIES}, not {retries}")));
    }
    let task = |new: NewTask| Task::new(&spider, new.or(priority, retries));
    let tasks: Vec<Task> = tasks.into_iter().map(task).collect();
    let keys = (tasks.len() <= MAX_KEYS).then(|| tasks.iter().map(|task| task.key.to_string()).collect());
    let (crawl, added) = submit_to_spider(&api, &spider, crawl, tasks).await?;
    Ok(Json(Submitted { crawl: crawl.id, spider: crawl.spider, new: added.new, known: added.known, keys }))
}

/// Submits tasks to a spider, in this crawl or a new one. Returns the crawl.
pub(crate) async fn submit_to_spider(
    api: &Api,
    spider: &SpiderName,
    crawl: Option<CrawlId>,
    tasks: Vec<Task>,
) -> Result<(CrawlRef, Added), Problem> {
    let urls: Vec<NewWork> = tasks.into_iter().map(NewWork::task).collect();
    let stats = match &crawl {
        Some(id) if api.backend.known(id).await?.is_some() => Some(api.begun(id).await?),
        _ => None,
    };
    if let Some(stats) = stats.as_ref().filter(|stats| stats.spider != *spider) {
        let detail = format!("{} is a crawl of the spider {}: name another", stats.crawl, stats.spider);
        return Err(Problem::new(Kind::Conflict, detail));
    }
    let (version, text) = api.spider_text(&ProjectName::default(), None, spider).await?;
    let spider = spider_of(spider, &text, stats.is_some(), &api.backend.settings);
    let spider = spider.map_err(Problem::malformed)?;
    let (crawl, is_new) = crawl_for(&spider, crawl, UnixMs::now()).map_err(Problem::malformed)?;
    let terms = match &stats {
        Some(stats) => api.backend.stats.terms(&stats.crawl_ref()).await?,
        None => Terms::new(&spider),
    };
    let text = version.map(|_| SpiderText::from(text));
    let judging = stats.is_none().then(|| Judging { is_dedup_chosen: true, ..spider.judging() });
    let opening = Opening { crawl: crawl.clone(), terms, text, judging, is_new, lease: LEASE, reads: None };
    Ok((crawl, admit(api, opening, stats.as_ref(), &urls).await?))
}
