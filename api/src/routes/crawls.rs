//! Crawls: the list, one of them, and what is done to it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use trawl_common::duration;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::names::{CrawlId, SpiderName};
use utoipa::{IntoParams, ToSchema};

use crate::Api;
use crate::cursor::{self, Limit};
use crate::extract::{Params, Segment};
use crate::problem::{Kind, Problem};
use crate::view::{Crawl, CrawlHost, Status};
use crate::watch::{is_over, no_crawl};

/// The longest wait of one request for the end of a crawl.
const LONGEST: Duration = Duration::from_secs(60);

/// Which crawls.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Listing {
    /// Only of this spider
    #[param(value_type = Option<String>)]
    spider: Option<SpiderName>,
    /// Only with this status
    #[param(value_type = Option<Status>, inline)]
    status: Option<CrawlState>,
    /// How many at most
    #[serde(default)]
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit,
    /// Where to go on: `next` of the page before
    cursor: Option<String>,
}

/// A page of crawls, the newest first
#[derive(Serialize, ToSchema)]
pub(crate) struct Crawls {
    crawls: Vec<Crawl>,
    /// The cursor of the next page; absent on the last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// The crawls that are known
#[utoipa::path(
    get, path = "/api/v1/crawls", tag = "crawls", security(("token" = [])),
    params(Listing),
    responses((status = 200, body = Crawls))
)]
pub(crate) async fn list_crawls(
    State(api): State<Arc<Api>>,
    Params(listing): Params<Listing>,
) -> Result<Json<Crawls>, Problem> {
    let after: Option<(u64, String)> = listing.cursor.as_deref().map(cursor::decode).transpose()?;
    let mut crawls = api.backend.stats.crawls().await?;
    let place = |stats: &CrawlStats| (stats.started.0, stats.crawl.to_string());
    crawls.sort_by_key(|stats| std::cmp::Reverse(place(stats)));
    crawls.retain(|stats| {
        after.as_ref().is_none_or(|after| place(stats) < *after)
            && listing.spider.as_ref().is_none_or(|spider| *spider == stats.spider)
            && listing.status.is_none_or(|status| status == stats.status)
    });
    let has_more = crawls.len() > listing.limit.get();
    crawls.truncate(listing.limit.get());
    let next = crawls.last().filter(|_| has_more).map(|last| cursor::encode(&place(last)));
    Ok(Json(Crawls { crawls: crawls.into_iter().map(Crawl::from).collect(), next }))
}

/// How long to wait.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Waiting {
    /// Answer when the crawl has ended, or after this time, `60s` at most
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
            wait if wait <= LONGEST => Ok(Self(wait)),
            _ => Err(format!("wait: at most {}s: ask again after that", LONGEST.as_secs())),
        }
    }
}

/// One crawl, at once or when it has ended
#[utoipa::path(
    get, path = "/api/v1/crawls/{id}", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id"), Waiting),
    responses((status = 200, body = Crawl), (status = 404, description = "There is no such crawl"))
)]
pub(crate) async fn get_crawl(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
    Params(Waiting { wait }): Params<Waiting>,
) -> Result<Json<Crawl>, Problem> {
    let mut stats = api.crawl(&id).await?;
    if let Some(Wait(wait)) = wait
        && !is_over(&stats)
    {
        let until = Instant::now() + wait;
        let mut watch = api.watchers.watch(&id)?;
        while let Ok(Some(seen)) = timeout_at(until, watch.next()).await {
            stats = seen?;
            if is_over(&stats) {
                break;
            }
        }
    }
    Ok(Json(stats.into()))
}

/// Holds a crawl: no fetch begins until it is resumed
#[utoipa::path(
    post, path = "/api/v1/crawls/{id}/pause", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id")),
    responses(
        (status = 200, body = Crawl),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "The crawl is over")
    )
)]
pub(crate) async fn pause_crawl(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
) -> Result<Json<Crawl>, Problem> {
    let crawl = api.crawl(&id).await?.crawl_ref();
    api.backend.control.pause(&crawl).await?;
    Ok(Json(api.crawl(&id).await?.into()))
}

/// Lets a paused crawl go on
#[utoipa::path(
    post, path = "/api/v1/crawls/{id}/resume", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id")),
    responses(
        (status = 200, body = Crawl),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "The crawl is over")
    )
)]
pub(crate) async fn resume_crawl(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
) -> Result<Json<Crawl>, Problem> {
    let crawl = api.crawl(&id).await?.crawl_ref();
    api.backend.control.resume(&crawl).await?;
    Ok(Json(api.crawl(&id).await?.into()))
}

/// Ends a crawl; what is left of it is cancelled
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
    let crawl = api.crawl(&id).await?.crawl_ref();
    if crawl.is_adhoc() {
        let detail = "the crawl of hand-published URLs never ends: pause it";
        return Err(Problem::new(Kind::Conflict, detail));
    }
    api.backend.control.cancel(&crawl).await?;
    Ok(Json(api.crawl(&id).await?.into()))
}

/// How many hosts.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Most {
    /// How many at most
    #[serde(default)]
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit,
}

/// The hosts of a crawl
#[derive(Serialize, ToSchema)]
pub(crate) struct CrawlHosts {
    hosts: Vec<CrawlHost>,
}

/// The hosts of a crawl with the most URLs, those first
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
    let crawl = api.crawl(&id).await?.crawl_ref();
    let hosts = api.backend.stats.hosts(&crawl, limit.get()).await?;
    Ok(Json(CrawlHosts { hosts: hosts.into_iter().map(CrawlHost::from).collect() }))
}

impl Api {
    /// The stats of a crawl that must exist.
    pub(crate) async fn crawl(&self, id: &CrawlId) -> Result<CrawlStats, Problem> {
        self.backend.stats.crawl_stats(id).await?.ok_or_else(|| no_crawl(id))
    }
}
