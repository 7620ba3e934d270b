//! Cron schedules: listing, running, pausing and resuming them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use tokio::sync::MutexGuard;
use trawl_common::jobs::NewJob;
use trawl_common::names::{CrawlId, ProjectName, SpiderName, SpiderRef};
use trawl_common::ports;
use trawl_common::schedule;
use trawl_common::time::UnixMs;
use trawl_common::timetable::{Standing, Timetable, is_known, standings};
use utoipa::ToSchema;

use super::new_crawl::asked;
use crate::Api;
use crate::cursor::{self, Paging};
use crate::extract::{Params, Segment};
use crate::problem::Problem;
use crate::view::{Job, Time};

/// A page of schedules, by project and spider
#[derive(Serialize, ToSchema)]
pub(crate) struct Schedules {
    schedules: Vec<Scheduled>,
    /// The cursor of the next page; absent on the last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A spider's schedule and its current state
#[derive(Serialize, ToSchema)]
struct Scheduled {
    project: String,
    spider: String,
    schedule: Schedule,
    paused: bool,
    /// The time at which the next crawl is due; null while it is paused
    next: Option<Time>,
    /// The spider's last job, scheduled or not, if it is among the newest thousand
    last: Option<Last>,
}

/// The times at which a spider's crawls are submitted
#[derive(Serialize, ToSchema)]
pub(crate) struct Schedule {
    #[schema(examples("*/15 * * * *"))]
    cron: String,
    timezone: String,
    /// The rule for an instant at which there was no worker: `skip`, `run`
    missed: &'static str,
    /// The rule for an instant at which the spider's last crawl is not over: `skip`, `queue`
    overlap: &'static str,
    /// The next three instants
    next: Vec<Time>,
}

/// A job, with the id of its crawl
#[derive(Serialize, ToSchema)]
struct Last {
    crawl: String,
    #[serde(flatten)]
    job: Job,
}

/// The new state of a schedule
#[derive(Serialize, ToSchema)]
pub(crate) struct Holding {
    project: String,
    spider: String,
    paused: bool,
}

impl From<&schedule::Schedule> for Schedule {
    fn from(schedule: &schedule::Schedule) -> Self {
        let next = schedule.instants(UnixMs::now()).take(3);
        Self {
            cron: schedule.cron.to_string(),
            timezone: schedule.timezone_name().to_owned(),
            missed: schedule.missed.into(),
            overlap: schedule.overlap.into(),
            next: next.map(Time::from).collect(),
        }
    }
}

impl From<Standing> for Scheduled {
    fn from(standing: Standing) -> Self {
        let next = standing.next(UnixMs::now());
        let Standing { spider: SpiderRef { project, spider }, schedule, is_paused, last } = standing;
        Self {
            project: project.to_string(),
            spider: spider.to_string(),
            next: next.map(Time::from),
            schedule: (&schedule).into(),
            paused: is_paused,
            last: last.map(|job| Last { crawl: job.new.id.to_string(), job: (&job).into() }),
        }
    }
}

/// The schedules of deployed spiders, and of those with files beside the API
#[utoipa::path(
    get, path = "/api/v1/schedules", tag = "schedules", security(("token" = [])),
    params(Paging),
    responses((status = 200, body = Schedules))
)]
pub(crate) async fn list_schedules(
    State(api): State<Arc<Api>>,
    Params(listing): Params<Paging>,
) -> Result<Json<Schedules>, Problem> {
    let after: Option<(String, String)> = listing.cursor.as_deref().map(cursor::decode).transpose()?;
    let place = |spider: &SpiderRef| (spider.project.to_string(), spider.spider.to_string());
    let mut all = standings(&*api.timetable().await?, &*api.backend.schedules, &*api.backend.jobs).await?;
    all.retain(|standing| after.as_ref().is_none_or(|after| place(&standing.spider) > *after));
    let has_more = all.len() > listing.limit.get();
    all.truncate(listing.limit.get());
    let next = all.last().filter(|_| has_more).map(|last| cursor::encode(&place(&last.spider)));
    Ok(Json(Schedules { schedules: all.into_iter().map(Scheduled::from).collect(), next }))
}

/// Submits a crawl of a scheduled spider now, in addition to those that are due
#[utoipa::path(
    post, path = "/api/v1/schedules/{project}/{spider}/run", tag = "schedules", security(("token" = [])),
    params(("project" = String, Path, description = "Its project"), ("spider" = String, Path, description = "The spider")),
    responses(
        (status = 201, body = crate::view::Crawl, description = "It is pending", headers(("Location" = String))),
        (status = 404, description = "There is no such schedule")
    )
)]
pub(crate) async fn run_schedule(
    State(api): State<Arc<Api>>,
    Segment((project, spider)): Segment<(ProjectName, SpiderName)>,
) -> Result<Response, Problem> {
    let spider = api.scheduled(project, spider).await?;
    let new = NewJob::from_id(CrawlId::generate(UnixMs::now()), spider);
    asked(&api, NewJob { is_scheduled: true, ..new }).await
}

/// Pauses a schedule: no crawl is submitted for it until it is resumed
#[utoipa::path(
    post, path = "/api/v1/schedules/{project}/{spider}/pause", tag = "schedules", security(("token" = [])),
    params(("project" = String, Path, description = "Its project"), ("spider" = String, Path, description = "The spider")),
    responses((status = 200, body = Holding), (status = 404, description = "There is no such schedule"))
)]
pub(crate) async fn pause_schedule(
    State(api): State<Arc<Api>>,
    Segment((project, spider)): Segment<(ProjectName, SpiderName)>,
) -> Result<Json<Holding>, Problem> {
    let spider = api.scheduled(project, spider).await?;
    api.backend.schedules.pause(&spider).await?;
    Ok(Json(Holding::new(&spider, true)))
}

/// Resumes a schedule; instants that passed while it was paused are skipped
#[utoipa::path(
    post, path = "/api/v1/schedules/{project}/{spider}/resume", tag = "schedules", security(("token" = [])),
    params(("project" = String, Path, description = "Its project"), ("spider" = String, Path, description = "The spider")),
    responses((status = 200, body = Holding), (status = 404, description = "There is no such schedule"))
)]
pub(crate) async fn resume_schedule(
    State(api): State<Arc<Api>>,
    Segment((project, spider)): Segment<(ProjectName, SpiderName)>,
) -> Result<Json<Holding>, Problem> {
    let spider = api.scheduled(project, spider).await?;
    api.backend.schedules.resume(&spider, UnixMs::now()).await?;
    Ok(Json(Holding::new(&spider, false)))
}

impl Holding {
    fn new(SpiderRef { project, spider }: &SpiderRef, paused: bool) -> Self {
        Self { project: project.to_string(), spider: spider.to_string(), paused }
    }
}

impl Api {
    /// Returns the schedules known now.
    async fn timetable(&self) -> ports::Result<MutexGuard<'_, Timetable>> {
        let mut timetable = self.timetable.lock().await;
        timetable.read_again(&*self.backend.spider_store, &self.backend.settings).await?;
        Ok(timetable)
    }

    /// Returns a spider that must have a schedule, as far as the API or a worker has seen one.
    async fn scheduled(&self, project: ProjectName, spider: SpiderName) -> Result<SpiderRef, Problem> {
        let spider = SpiderRef { project, spider };
        let is_known = is_known(&spider, &*self.timetable().await?, &*self.backend.schedules).await?;
        let unknown = || Problem::not_found(format_args!("no schedule of {spider}: GET /api/v1/schedules"));
        if is_known { Ok(spider) } else { Err(unknown()) }
    }
}
