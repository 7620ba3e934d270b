//! One URL of a crawl: its state, or how it ended.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use trawl_common::dead_letters::Failed;
use trawl_common::explain::{self, InCrawl, UrlReport};
use trawl_common::frontier::{self, Key, RequestKey, UrlState};
use trawl_common::names::CrawlId;
use trawl_common::request::RequestView;
use trawl_common::settings::Urls;
use trawl_common::spider::item;
use trawl_common::spider::page_history::{Tally, Visited};
use trawl_common::web::url::CanonicalUrl;
use utoipa::{IntoParams, ToSchema};

use crate::Api;
use crate::extract::{Params, Segment};
use crate::given_url::page;
use crate::problem::Problem;
use crate::view::{Change, DeadLetter, Host, Request, RobotsVerdict, Time};

/// The requested URL.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// The URL, in any form, or the key of a request; percent-encoded, as it may have parameters of its own
    #[param(example = "https%3A%2F%2Fexample.com%2F")]
    url: String,
}

/// The state of a URL or a request in a crawl
#[derive(Serialize, ToSchema)]
pub(crate) struct Url {
    /// Its canonical form, or the key of a request
    url: String,
    /// The request, if it is one and has not succeeded yet
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request: Option<Request>,
    #[serde(flatten)]
    standing: Standing,
    /// The spider's history of the page, from any crawl
    page: Option<PageHistory>,
    #[schema(value_type = RobotsVerdict)]
    robots: explain::RobotsVerdict,
    /// The schedule of its host, if it was asked recently
    host: Option<Host>,
    /// Its state, the reason and the next step, each in a sentence
    words: Vec<String>,
}

/// The state of a URL in a crawl
#[derive(Serialize, ToSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
enum Standing {
    /// The spider has not seen it, or has forgotten it
    Unseen,
    /// It has no final state yet
    Pending(PendingUrl),
    /// It failed, expired, or was skipped because its host is blocked: it is a dead letter
    Failed { dead_letter: Box<DeadLetter> },
    /// It has its final state, or another crawl of the spider has it
    Ended {
        /// How it ended in this crawl: null if nothing tells, as of pages that were skipped for another reason than
        /// that they had not changed, of requests, of crawls whose `dedup` is `spider`, and of pages that a later
        /// crawl has fetched
        outcome: Option<PageOutcome>,
    },
}

/// The end of a page
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum PageOutcome {
    /// It was fetched and stored
    Done,
    /// It was left out, because its server said that it had not changed
    Skipped,
}

impl From<explain::PageOutcome> for PageOutcome {
    fn from(outcome: explain::PageOutcome) -> Self {
        match outcome {
            explain::PageOutcome::Done => Self::Done,
            explain::PageOutcome::Skipped => Self::Skipped,
        }
    }
}

/// A URL without a final state
#[derive(Serialize, ToSchema)]
struct PendingUrl {
    #[serde(flatten)]
    place: Place,
    /// The number of failed attempts
    attempts: u32,
    lane: String,
    /// The time after which it is no longer worth fetching
    deadline: Option<Time>,
}

/// The place of a pending URL
#[derive(Serialize, ToSchema)]
#[serde(tag = "place", rename_all = "lowercase")]
enum Place {
    /// It waits in its lane for a worker
    Queued,
    /// It waits until a later time, for its host or after a failure
    Parked { until: Time },
    /// A worker holds it
    Held {
        worker: String,
        /// Whether its fetch has started
        started: bool,
    },
}

/// The history of a page
#[derive(Serialize, ToSchema)]
struct PageHistory {
    /// The time of its last fetch, including those that found it unchanged
    fetched_at: Time,
    #[schema(value_type = Change)]
    change: item::Change,
    /// The number of links from the start of the crawl
    depth: u16,
    /// The status of the last answer, 304 if it had not changed; null if an older version fetched it
    status: Option<u16>,
    /// The number of items that it gave when it was last read; null if an older version fetched it
    items: Option<u64>,
    /// The number of its links that were followed then; null if an older version fetched it
    links: Option<u32>,
    /// The final URL of its redirects, if there were any
    final_url: Option<String>,
}

/// One URL of a crawl: its place while it is pending, why it failed, and when its page was last fetched
#[utoipa::path(
    get, path = "/api/v1/crawls/{id}/url", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id"), Asked),
    responses(
        (status = 200, body = Url),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "The crawl has not begun")
    )
)]
pub(crate) async fn get_url(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
    Params(Asked { url }): Params<Asked>,
) -> Result<Json<Url>, Problem> {
    let (url, key) = named(&url, &api.backend.settings.urls)?;
    let stats = api.begun(&id).await?;
    let UrlReport { key, schedule, robots, request, crawls, spiders, .. } =
        api.backend.explainer().url_in(&url, &key, &stats).await?;
    let (standing, mut words) = match crawls.into_iter().next() {
        Some(known) => (standing(&key, &known), known.words),
        None => (Standing::Unseen, Vec::new()),
    };
    let spider = spiders.into_iter().next();
    let page = spider.and_then(|known| {
        words.extend(known.words.into_iter().skip(1));
        known.page.map(PageHistory::from)
    });
    let host = schedule.map(Host::from);
    let request = request.map(|request| RequestView::from(&request.new).into());
    Ok(Json(Url { url: key.to_string(), request, standing, page, robots, host, words }))
}

/// Returns the URL and the key of the record that a text refers to.
fn named(text: &str, urls: &Urls) -> Result<(CanonicalUrl, Key), Problem> {
    if let Ok(key) = text.trim().parse::<RequestKey>() {
        return Ok((key.url(), key.into()));
    }
    let url = page("url", text, urls)?;
    Ok((url.clone(), url.into()))
}

fn standing(key: &Key, known: &InCrawl) -> Standing {
    match (&known.state, &known.dead_letter) {
        (UrlState::Pending(record), _) => Standing::Pending(record.clone().into()),
        (_, Some(note)) => {
            let failed = Failed { crawl: known.crawl.clone(), url: key.to_string(), note: note.clone() };
            Standing::Failed { dead_letter: Box::new(failed.into()) }
        }
        (UrlState::Unseen, None) => Standing::Unseen,
        (UrlState::Ended, None) => Standing::Ended { outcome: known.outcome.map(PageOutcome::from) },
    }
}

impl From<frontier::Record> for PendingUrl {
    fn from(record: frontier::Record) -> Self {
        let place = match record.state {
            frontier::State::New { .. } | frontier::State::Queued { .. } => Place::Queued,
            frontier::State::Parked { until, .. } => Place::Parked { until: until.into() },
            frontier::State::Held { by, has_started, .. } => {
                Place::Held { worker: by.to_string(), started: has_started }
            }
        };
        let deadline = record.deadline.map(Time::from);
        Self { place, attempts: record.attempts, lane: record.lane.to_string(), deadline }
    }
}

impl From<Visited> for PageHistory {
    fn from(visited: Visited) -> Self {
        let answer = visited.answer;
        Self {
            fetched_at: visited.fetched_at.into(),
            change: visited.change,
            depth: visited.depth,
            status: answer.as_ref().map(|answer| answer.status),
            items: visited.items.as_ref().map(Tally::total),
            links: answer.as_ref().map(|answer| answer.links),
            final_url: answer.and_then(|answer| Some(answer.landed?.to_string())),
        }
    }
}
