//! Adds URLs to a running crawl.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::route::{Hints, route};
use trawl_common::health::Health;
use trawl_common::names::CrawlId;
use trawl_common::ports::{NewWork, Opening, SourcesRead};
use trawl_common::request::NewRequest;
use trawl_common::settings::Settings;
use trawl_common::time::UnixMs;
use utoipa::ToSchema;

use crate::Api;
use crate::extract::{Json, Segment};
use crate::new_requests::{UrlOrRequest, asked};
use crate::problem::{Kind, Problem};

/// Maximum number of URLs in one request.
const MAX_URLS: usize = 10_000;
/// How long an aborted request keeps the spider's other crawls from being fed.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// URLs and requests to crawl
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUrls {
    /// At most 10,000
    #[schema(value_type = Vec<UrlOrRequest>, min_items = 1, max_items = 10_000)]
    urls: Vec<NewRequest>,
}

/// The outcome of adding URLs
#[derive(Serialize, ToSchema)]
pub(crate) struct Added {
    /// How many are new to the spider, or to the crawl if that fetches pages again: these are pending now
    pub(crate) new: u64,
    /// How many were known already
    pub(super) known: u64,
}

/// Adds URLs to a crawl that is not over. Once this responds, none of them can be lost. They are routed by the
/// settings; the crawl's page limit stays as it is
#[utoipa::path(
    post, path = "/api/v1/crawls/{id}/urls", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id")), request_body = NewUrls,
    responses(
        (status = 200, body = Added),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "The crawl is over, has not begun, or another of its spider is being fed")
    )
)]
pub(crate) async fn add_urls(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
    Json(NewUrls { urls }): Json<NewUrls>,
) -> Result<axum::Json<Added>, Problem> {
    if !(1..=MAX_URLS).contains(&urls.len()) {
        return Err(Problem::malformed(format_args!("urls: 1 to {MAX_URLS} at a time")));
    }
    let now = UnixMs::now();
    let urls: Vec<NewWork> =
        urls.into_iter().map(|new| new_work(&api.backend.settings, new, now)).collect::<Result<_, _>>()?;
    let stats = api.begun(&id).await?;
    let crawl = stats.crawl_ref();
    if crawl.is_adhoc() {
        let detail = "this crawl is for URLs that are published to the queues (docs/fleet.md)";
        return Err(Problem::new(Kind::Conflict, detail));
    }
    let terms = api.backend.stats.terms(&crawl).await?;
    let opening =
        Opening { crawl, terms, text: None, judging: None, is_new: false, lease: LEASE, reads: None };
    Ok(axum::Json(admit(&api, opening, Some(&stats), &urls).await?))
}

/// Admits URLs to a crawl, and returns their outcome once none of them can be lost. `stats` are those of a crawl that
/// has started.
pub(super) async fn admit(
    api: &Api,
    opening: Opening,
    stats: Option<&CrawlStats>,
    urls: &[NewWork],
) -> Result<Added, Problem> {
    let session = api.backend.engine.open(opening, Arc::new(Health::fail_fast())).await?;
    let new = session.admit(urls).await?.into_iter().filter(|is_new| *is_new).count();
    let added = Added { new: new as u64, known: (urls.len() - new) as u64 };
    if stats.is_none_or(|stats| stats.discovered) {
        session.close_read(Some(SourcesRead::of_submission(added.known))).await?;
    }
    // Otherwise others are reading its sources, or may resume them, and ending discovery is up to them. Dropping the
    // session ends discovery if nobody else has, but not at once.
    Ok(added)
}

fn new_work(settings: &Settings, new: NewRequest, now: UnixMs) -> Result<NewWork, Problem> {
    let written = settings.urls.spelling(&new.url);
    let (url, work) = asked(new, &settings.urls)?;
    let routed = route(&settings.route, &url, Hints::default());
    Ok(NewWork { written, deadline: routed.ttl.map(|ttl| now.plus(ttl)), ..NewWork::new(work, routed.lane) })
}
