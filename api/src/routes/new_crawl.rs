//! Submits a crawl: a worker starts it when it is first in the queue.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use trawl_common::frontier::{DedupScope, Recrawl};
use trawl_common::jobs::{IdempotencyKey, InvalidIdempotencyKey, JobOverrides, NewJob};
use trawl_common::list::ListEntry;
use trawl_common::names::{CrawlId, ProjectName, SpiderName};
use trawl_common::ports::{self, Jobs, Submitted};
use trawl_common::priority::Priority;
use trawl_common::request::NewRequest;
use trawl_common::settings::Urls;
use trawl_common::spider::Version;
use trawl_common::spider::arguments::Arguments;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use utoipa::ToSchema;

use crate::extract::Json;
use crate::given_url::parsed;
use crate::new_requests::{UrlOrRequest, asked as asked_for};
use crate::new_tasks::Task;
use crate::problem::Problem;
use crate::spiders::{Found, check_arguments, find, spider_of};
use crate::view::Crawl;
use crate::{Api, Backend};

/// The request header that makes a repeated submission idempotent (draft-ietf-httpapi-idempotency-key-header).
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The crawl to submit: as in the spider's file, or of the given `urls`, `tasks` and `sources` instead
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCrawl {
    /// The spider. Where URLs or sources are named, it may be left out: then it is `default`, which needs no file
    #[schema(value_type = Option<String>)]
    spider: Option<SpiderName>,
    /// The project that the crawl belongs to
    #[serde(default)]
    #[schema(value_type = String, default = "default")]
    project: ProjectName,
    /// Pages to crawl as they are, each by a plain GET or as a request says. With tasks and sources at most 10,000
    #[serde(default)]
    #[schema(value_type = Vec<UrlOrRequest>)]
    urls: Vec<NewRequest>,
    /// Tasks for the program of the spider
    #[serde(default)]
    #[schema(value_type = Vec<Task>)]
    tasks: Vec<NewTask>,
    /// Sitemaps, feeds and lists of URLs on the web, to be read for pages
    #[serde(default)]
    sources: Vec<String>,
    /// The spider's arguments
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    arguments: Arguments,
    /// The version of the project; the latest if absent
    #[schema(value_type = Option<String>)]
    version: Option<Version>,
    /// Settings that override the spider's file
    #[serde(default)]
    settings: Overrides,
    /// The priority: crawls with the highest are started first
    #[serde(default)]
    #[schema(value_type = f64, default = 0)]
    priority: Priority,
}

/// Settings that override a spider's file in one crawl
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Overrides {
    /// Which URLs it takes for seen: those of all crawls of its spider (`spider`), its own (`crawl`), or also those
    /// that were fetched less than an age ago, as `12h`. Without this, `recrawl`, and either in the spider's file, it
    /// is `crawl`
    #[schema(value_type = Option<String>, example = "crawl")]
    dedup: Option<DedupScope>,
    /// Whether what was crawled before is fetched again: `never`, `changed` (if it has), `always`, or what is older
    /// than an age, as `12h`
    #[schema(value_type = Option<String>, example = "changed")]
    recrawl: Option<Recrawl>,
    /// The crawl ends once it has done this many pages
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_pages: Option<NonZeroU64>,
    /// Maximum number of URLs taken from the sources
    limit: Option<u64>,
}

/// Submits a crawl, which a worker starts when it is first in the queue. Once this responds, the crawl cannot be lost.
/// A request with an `Idempotency-Key` that was used before returns the first crawl, whatever the body says
#[utoipa::path(
    post, path = "/api/v1/crawls", tag = "crawls", security(("token" = [])), request_body = NewCrawl,
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters, in quotes or not")),
    responses(
        (status = 201, body = Crawl, description = "It is pending", headers(("Location" = String))),
        (status = 200, body = Crawl, description = "It was asked for before, with the same key", headers(("Location" = String)))
    )
)]
pub(crate) async fn start_crawl(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Json(new): Json<NewCrawl>,
) -> Result<Response, Problem> {
    let job = NewJob { idempotency_key: key(&headers)?, ..new.job(&api.backend.settings.urls)? };
    job.check().map_err(Problem::malformed)?;
    let Backend { spider_store, settings, .. } = &api.backend;
    // A spider that is found nowhere is left to the workers.
    if let Found::Deployed(text) | Found::Here(text) = find(&**spider_store, &job, settings).await? {
        check_arguments(&job, &text, settings)?;
        if job.tasks().next().is_some() {
            let spider = spider_of(&job.spider, &text, true, settings).map_err(Problem::malformed)?;
            spider.takes_tasks().map_err(Problem::malformed)?;
        }
    }
    asked(&api, job).await
}

/// Submits a job, and responds with its crawl.
pub(super) async fn asked(api: &Api, job: NewJob) -> Result<Response, Problem> {
    let (status, id) = match submit(&*api.backend.jobs, job).await? {
        (id, true) => (StatusCode::CREATED, id),
        (id, false) => (StatusCode::OK, id),
    };
    let crawl = Crawl::from(api.known(&id).await?);
    Ok((status, [(LOCATION, format!("/api/v1/crawls/{id}"))], axum::Json(crawl)).into_response())
}

/// Submits a job. Returns its id, and whether it is new.
async fn submit(jobs: &dyn Jobs, mut new: NewJob) -> ports::Result<(CrawlId, bool)> {
    loop {
        match jobs.submit(&new).await? {
            Submitted::New => return Ok((new.id, true)),
            Submitted::Known(id) if id != new.id => return Ok((id, false)),
            Submitted::Known(id) => {
                // The call was repeated in transit, or another job was given the same id in the same second.
                if jobs.job(&id).await?.is_some_and(|job| job.new == new) {
                    return Ok((id, true));
                }
                new.id = CrawlId::generate(UnixMs::now());
            }
        }
    }
}

impl NewCrawl {
    fn job(self, urls: &Urls) -> Result<NewJob, Problem> {
        let is_named = !self.urls.is_empty() || !self.sources.is_empty();
        // The default spider needs no file and has no program.
        let needs_none = is_named && self.tasks.is_empty();
        let Some(spider) = self.spider.or_else(|| needs_none.then(SpiderName::default)) else {
            return Err(Problem::malformed("spider: say which, or name `urls` or `sources`, and no tasks"));
        };
        let page = |new| checked(new, urls).map(ListEntry::from);
        let task = |(number, task): (usize, NewTask)| match task.only_for(&spider) {
            Ok(task) => Ok(ListEntry::Task(task)),
            Err(error) => Err(Problem::malformed(format_args!("tasks: task {number}: {error}"))),
        };
        let tasks = (1..).zip(self.tasks).map(task);
        let Overrides { dedup, recrawl, max_pages, limit } = self.settings;
        if dedup.is_some() && recrawl.is_some() {
            let both = "settings: `recrawl` says which URLs are taken for seen: leave it or `dedup` out";
            return Err(Problem::malformed(both));
        }
        Ok(NewJob {
            project: self.project,
            urls: self.urls.into_iter().map(page).chain(tasks).collect::<Result<_, _>>()?,
            sources: self.sources.iter().map(|text| parsed("sources", text)).collect::<Result<_, _>>()?,
            arguments: self.arguments,
            version: self.version,
            settings: JobOverrides { recrawl, dedup, max_pages, limit },
            priority: self.priority,
            ..NewJob::new(CrawlId::generate(UnixMs::now()), spider.clone())
        })
    }
}

/// Checks the URL of a page to crawl, and returns the request with its canonical URL.
fn checked(new: NewRequest, urls: &Urls) -> Result<NewRequest, Problem> {
    let (url, _) = asked_for(new.clone(), urls)?;
    Ok(NewRequest { url: url.to_string(), ..new })
}

/// Returns the idempotency key of a request. The draft writes it as an RFC 9651 string, in quotes; many clients omit
/// them.
fn key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
    let wrong = |reason: &dyn Display| Problem::malformed(format_args!("Idempotency-Key: {reason}"));
    let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(first) = sent.next() else { return Ok(None) };
    if sent.next().is_some() {
        return Err(wrong(&"send one"));
    }
    let text = first.to_str().unwrap_or_default().trim();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    bare.parse().map(Some).map_err(|error: InvalidIdempotencyKey| wrong(&error))
}
