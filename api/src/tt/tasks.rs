//! Tasks: submitted, given to drones, and released by them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;
use trawl_common::frontier::Task;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::{CrawlId, ProjectName, SpiderName};
use trawl_common::ports::Runner;
use trawl_common::project;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;

use super::answer::{Answer, done, none, nothing};
use super::lease::{Assigned, Said};
use super::numbers::{self, Project};
use super::projects::{self, not_found};
use super::{TaskTracker, projects::not_allowed};
use crate::extract::Segment;
use crate::problem::{Kind, Problem};
use crate::routes::tasks::submit_to_spider;

/// The beginning of the ids of crawls that drones' tasks go to.
const CRAWL: &str = "tt-";

/// Maximum number of tries of a submission that another one is in the way of, and the pause before the next.
const TRIES: (u32, Duration) = (6, Duration::from_millis(500));

/// A task to submit. Keys that are not known are passed over.
#[derive(Deserialize)]
struct NewDroneTask {
    project: Project,
    recipe: String,
    priority: Option<f64>,
    max_retries: Option<u32>,
    #[serde(alias = "hash64")]
    hash_u64: Option<i128>,
    #[serde(alias = "unique_string")]
    unique_str: Option<String>,
    verification_count: Option<i64>,
}

impl NewDroneTask {
    /// Returns it as a task of trawl. A task without a hash is one of its own, whatever its recipe.
    fn task(self) -> Result<NewTask, Problem> {
        if self.verification_count.is_some_and(|count| count > 1) {
            return Err(Problem::malformed("verification_count: a task is done once here"));
        }
        let by_hash = self.hash_u64.filter(|hash| *hash != 0).map(|hash| hash.to_string());
        let unique = self.unique_str.filter(|text| !text.is_empty()).or(by_hash);
        let unique = unique.unwrap_or_else(|| format!("{:032x}", rand::random::<u128>()));
        let task = json!({
            "recipe": self.recipe, "priority": self.priority, "retries": self.max_retries, "unique": unique,
        });
        NewTask::try_from(task).map_err(Problem::malformed)
    }
}

/// Many tasks of one project.
#[derive(Deserialize)]
struct NewDroneTasks {
    requests: Vec<NewDroneTask>,
}

/// Submits a task to the spider of a project.
pub(super) async fn submit(State(tt): State<Arc<TaskTracker>>, request: Request) -> Answer {
    let (runner, task): (_, NewDroneTask) = tt.call(request).await?;
    match tt.submit(&runner, vec![task]).await? {
        0 => Err(Problem::malformed("a task with this hash was submitted before").into()),
        _ => nothing(),
    }
}

/// Submits tasks to the spider of a project. Those that are known already are left out.
pub(super) async fn submit_all(State(tt): State<Arc<TaskTracker>>, request: Request) -> Answer {
    let (runner, NewDroneTasks { requests }) = tt.call(request).await?;
    if requests.is_empty() {
        return Err(Problem::malformed("requests: at least one task").into());
    }
    tt.submit(&runner, requests).await?;
    nothing()
}

impl TaskTracker {
    /// Submits tasks of one project. Returns how many are new.
    async fn submit(&self, runner: &Runner, tasks: Vec<NewDroneTask>) -> Result<u64, Problem> {
        let mut of_project: Option<ProjectName> = None;
        for task in &tasks {
            let name = task.project.of(runner).ok_or_else(not_found)?;
            if of_project.get_or_insert_with(|| name.clone()) != name {
                return Err(Problem::malformed("all tasks of one call are of one project"));
            }
        }
        let spider = self.spider(&of_project.ok_or_else(not_found)?).await?;
        let task = |new: NewDroneTask| Ok(Task::new(&spider, new.task()?));
        let tasks: Vec<Task> = tasks.into_iter().map(task).collect::<Result<_, Problem>>()?;
        let (mut tries, pause) = TRIES;
        loop {
            tries -= 1;
            let crawl = self.crawl(&spider).await?;
            match submit_to_spider(&self.api, &spider, Some(crawl), tasks.clone()).await {
                // The crawl has ended meanwhile, or another one of the spider is being fed.
                Err(problem) if problem.status() == StatusCode::CONFLICT && tries > 0 => sleep(pause).await,
                submitted => return submitted.map(|(_, added)| added.new),
            }
        }
    }

    /// Returns the crawl that tasks of a spider go to: one that drones' tasks went to and that is not over, or else a new
    /// one.
    async fn crawl(&self, spider: &SpiderName) -> Result<CrawlId, Problem> {
        let open = self.api.backend.stats.open_crawls(spider).await?;
        let open = open.into_iter().map(|stats| stats.crawl).find(|crawl| crawl.as_str().starts_with(CRAWL));
        match open {
            Some(crawl) => Ok(crawl),
            None => {
                format!("{CRAWL}{}", CrawlId::generate(UnixMs::now())).parse().map_err(Problem::malformed)
            }
        }
    }

    /// Returns the spider of a project: the only one, or the one with the project's name.
    async fn spider(&self, name: &ProjectName) -> Result<SpiderName, Problem> {
        let project = self.api.backend.projects.project(name).await?.ok_or_else(not_found)?;
        let mut spiders = project.spiders.iter();
        let only = spiders.next().filter(|_| spiders.next().is_none());
        let spider = project.spiders.iter().find(|spider| spider.as_str() == name.as_str()).or(only);
        let none = || {
            let detail = "has not one spider, nor one of its own name";
            Problem::new(
                Kind::Conflict,
                format_args!("the project {name} {detail}: trawl project set {name} --spider …"),
            )
        };
        spider.cloned().ok_or_else(none)
    }

    /// Returns whether there may be a task of a project that is not paused.
    async fn may_have_tasks(&self, project: &project::Project) -> Result<bool, Problem> {
        for spider in &project.spiders {
            let open = self.api.backend.stats.open_crawls(spider).await?;
            if open.iter().any(|crawl| crawl.pending > 0 && crawl.status != CrawlState::Paused) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[derive(Serialize)]
struct TaskContent {
    task: DroneTask,
}

/// A task, as a drone gets it.
#[derive(Serialize)]
struct DroneTask {
    id: u64,
    priority: f64,
    project: projects::Project,
    assignee: u64,
    /// Failed attempts so far.
    retries: u32,
    max_retries: u32,
    /// 1: it is given to a drone.
    status: u8,
    recipe: String,
    /// In seconds.
    max_assign_time: u64,
    /// In seconds since 1970.
    assign_time: u64,
    verification_count: u8,
}

/// Gives a drone a task of a project, if there is one.
pub(super) async fn assign(
    State(tt): State<Arc<TaskTracker>>,
    Segment(number): Segment<u64>,
    head: Parts,
) -> Answer {
    let runner = tt.caller(&head).await?;
    let Some(name) = Project::Number(number).of(&runner).cloned() else {
        return none(format_args!("no task: trawl runner approve {} --project …", runner.name));
    };
    if !runner.is_assigned(&name) {
        return none(not_allowed(&runner, &name).detail());
    }
    let project = tt.api.backend.projects.project(&name).await?.ok_or_else(not_found)?;
    if project.source.is_none() {
        return none(format_args!(
            "the code of {name} does not come from Git: trawl project set {name} --clone-url …"
        ));
    }
    if !tt.may_have_tasks(&project).await? {
        return none("No task available");
    }
    let assignee = numbers::of_worker(&runner.key);
    let Some(assigned) = tt.leases.take(&tt.api.relay, runner, name.clone()).await? else {
        return none("No task available");
    };
    let Assigned { number, task, attempts, max_retries, time } = assigned;
    let task = DroneTask {
        id: number,
        priority: task.new.priority.get(),
        project: projects::Project::new(&name, project.source.as_ref(), project.wanted.as_ref()),
        assignee,
        retries: attempts,
        max_retries,
        status: 1,
        recipe: task.new.recipe.to_string(),
        max_assign_time: time.as_secs(),
        assign_time: UnixMs::now().0 / 1000,
        verification_count: 1,
    };
    done(TaskContent { task })
}

#[derive(Deserialize)]
struct Release {
    task_id: u64,
    /// 0: it is done. 1: it failed. 2: the drone has not done it.
    result: u8,
}

#[derive(Serialize)]
struct Released {
    /// Whether the result counts.
    updated: bool,
}

/// Ends a task that a drone has.
pub(super) async fn release(State(tt): State<Arc<TaskTracker>>, request: Request) -> Answer {
    let (runner, Release { task_id, result }) = tt.call(request).await?;
    let said = match result {
        0 => Said::Done,
        1 => Said::Failed,
        2 => Said::Skipped,
        _ => return Err(Problem::malformed("result: 0 (done), 1 (failed) or 2 (skipped)").into()),
    };
    done(Released { updated: tt.leases.end(&runner.name, task_id, said).await })
}
