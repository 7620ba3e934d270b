//! Crawls: the list, a single one, and the actions on it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use trawl_common::cancel;
use trawl_common::duration;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::{CrawlId, SpiderName};
use utoipa::{IntoParams, ToSchema};

use crate::cursor::{self, Limit};
use crate::extract::{Params, Segment};
use crate::identity::Identity;
use crate::listing::ListPosition;
use crate::problem::{Kind, Problem};
use crate::view::{Crawl, CrawlHost, CrawlTasks, Known, Status};
use crate::{Api, Backend};

/// The longest wait of one request for the end of a crawl.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The filter of the list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Listing {
    /// Only those of this spider
    #[param(value_type = Option<String>)]
    spider: Option<SpiderName>,
    /// Only those with this status; `pending` means jobs that have not begun
    #[param(value_type = Option<Status>, inline)]
    status: Option<CrawlState>,
    /// Only those that are stalled, or only others
    stalled: Option<bool>,
    /// Only those with a job, or only those without
    job: Option<bool>,
    /// The maximum number of entries
    #[serde(default)]
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit,
    /// The position to continue at: `next` of the previous page
    cursor: Option<String>,
}

/// A page of crawls, the last submitted first
#[derive(Serialize, ToSchema)]
pub(crate) struct Crawls {
    /// May be empty although others follow
    crawls: Vec<Crawl>,
    /// The cursor of the next page; absent on the last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// The known crawls, including those of jobs that have not begun
#[utoipa::path(
    get, path = "/api/v1/crawls", tag = "crawls", security(("token" = [])),
    params(Listing),
    responses((status = 200, body = Crawls))
)]
pub(crate) async fn list_crawls(
    State(api): State<Arc<Api>>,
    Params(listing): Params<Listing>,
) -> Result<Json<Crawls>, Problem> {
    let Listing { spider, status, stalled, job, limit, cursor } = listing;
    let place: Option<ListPosition> = cursor.as_deref().map(cursor::decode).transpose()?;
    let is_meant = |known: &Known| {
        spider.as_ref().is_none_or(|spider| *spider == known.stats.spider)
            && status.is_none_or(|status| status == known.stats.status)
            && stalled.is_none_or(|stalled| stalled == known.stats.stalled)
            && job.is_none_or(|is_of_job| is_of_job == known.job.is_some())
    };
    let (crawls, next) = api.backend.list(is_meant, place.unwrap_or_default(), limit.get()).await?;
    let next = next.as_ref().map(cursor::encode);
    Ok(Json(Crawls { crawls: crawls.into_iter().map(Crawl::from).collect(), next }))
}

/// The time to wait.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Waiting {
    /// Answer when the crawl is over, with the work that it handed to other spiders; or after this time, at most `60s`
    #[param(value_type = Option<String>, example = "60s")]
    wait: Option<Wait>,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Wait(Duration);

impl TryFrom<String> for Wait {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match duration::parse(&text)? {
            wait if wait <= MAX_WAIT => Ok(Self(wait)),
            _ => Err(format!("wait: at most {}s: ask again after that", MAX_WAIT.as_secs())),
        }
    }
}

/// One crawl, at once or when it is over
#[utoipa::path(
    get, path = "/api/v1/crawls/{id}", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id"), Waiting),
    responses((status = 200, body = Crawl), (status = 404, description = "There is no such crawl"))
)]
pub(crate) async fn get_crawl(
    State(api): State<Arc<Api>>,
    identity: Identity,
    Segment(id): Segment<CrawlId>,
    Params(Waiting { wait }): Params<Waiting>,
) -> Result<Json<Crawl>, Problem> {
    let mut known = api.known(&id).await?;
    if let Some(Wait(wait)) = wait
        && !known.is_over()
    {
        let until = Instant::now() + wait;
        let mut watch = api.watchers.watch(&identity, &id)?;
        while let Ok(Some(seen)) = timeout_at(until, watch.next()).await {
            known = seen?;
            if known.is_over() {
                break;
            }
        }
    }
    let waits = match known.stats.status {
        // Its job shows what it waits for.
        CrawlState::Pending => Vec::new(),
        _ => api.backend.explainer().waits(&known.stats).await?,
    };
    Ok(Json(Crawl::from(known).waiting(waits)))
}

/// Pauses a crawl: no fetch starts until it is resumed
#[utoipa::path(
    post, path = "/api/v1/crawls/{id}/pause", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id")),
    responses(
        (status = 200, body = Crawl),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "The crawl is over, or has not begun")
    )
)]
pub(crate) async fn pause_crawl(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
) -> Result<Json<Crawl>, Problem> {
    let crawl = api.begun(&id).await?.crawl_ref();
    api.backend.control.pause(&crawl).await?;
    Ok(Json(api.known(&id).await?.into()))
}

/// Resumes a paused crawl
#[utoipa::path(
    post, path = "/api/v1/crawls/{id}/resume", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id")),
    responses(
        (status = 200, body = Crawl),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "The crawl is over, or has not begun")
    )
)]
pub(crate) async fn resume_crawl(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
) -> Result<Json<Crawl>, Problem> {
    let crawl = api.begun(&id).await?.crawl_ref();
    api.backend.control.resume(&crawl).await?;
    Ok(Json(api.known(&id).await?.into()))
}

/// Ends a crawl and cancels what is left of it. A crawl that has not begun leaves the queue of jobs; if a
/// worker is about to start it, that worker ends it
#[utoipa::path(
    post, path = "/api/v1/crawls/{id}/cancel", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id")),
    responses(
        (status = 200, body = Crawl),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "The crawl is finished, or never ends")
    )
)]
pub(crate) async fn cancel_crawl(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
) -> Result<Json<Crawl>, Problem> {
    let crawl = api.known(&id).await?.stats.crawl_ref();
    if crawl.is_adhoc() {
        let detail = "the crawl of hand-published URLs never ends: pause it";
        return Err(Problem::new(Kind::Conflict, detail));
    }
    let Backend { jobs, control, stats, .. } = &api.backend;
    cancel::cancel_crawl(&crawl, &**jobs, &**control, &**stats).await?;
    Ok(Json(api.known(&id).await?.into()))
}

/// The number of hosts.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Most {
    /// The maximum number of entries
    #[serde(default)]
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit,
}

/// The hosts of a crawl
#[derive(Serialize, ToSchema)]
pub(crate) struct CrawlHosts {
    hosts: Vec<CrawlHost>,
    /// The crawl's tasks, which have no host; absent if there are more hosts than these
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tasks: Option<CrawlTasks>,
}

/// The hosts of a crawl, those with the most URLs first; and its tasks, which have no host
#[utoipa::path(
    get, path = "/api/v1/crawls/{id}/hosts", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id"), Most),
    responses((status = 200, body = CrawlHosts), (status = 404, description = "There is no such crawl"))
)]
pub(crate) async fn list_crawl_hosts(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
    Params(Most { limit }): Params<Most>,
) -> Result<Json<CrawlHosts>, Problem> {
    let stats = api.known(&id).await?.stats;
    let hosts = api.backend.stats.hosts(&stats.crawl_ref(), limit.get()).await?;
    let tasks = (hosts.len() < limit.get()).then(|| stats.of_tasks(&hosts).into());
    Ok(Json(CrawlHosts { tasks, hosts: hosts.into_iter().map(CrawlHost::from).collect() }))
}
