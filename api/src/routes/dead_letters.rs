//! Dead letters: listing, replaying and purging them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use trawl_common::dead_letters::{self, Failed, Filter, Replay};
use trawl_common::duration;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::{Key, outcome};
use trawl_common::names::{CrawlId, SpiderName};
use utoipa::{IntoParams, ToSchema};

use crate::Api;
use crate::cursor;
use crate::extract::{Json, Params};
use crate::identity::Identity;
use crate::problem::Problem;
use crate::view::{DeadLetter, Reason};

/// Maximum time for one count, and maximum number of dead letters found, if each has to be read.
const COUNT_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_COUNT: usize = 10_000;
/// Maximum time for one request; the response then has a cursor for the next.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of lists counted at once.
const COUNT_CONCURRENCY: usize = 16;

/// The filter of the list.
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
    /// Only this URL, or this text that is not a URL
    url: Option<String>,
    /// Only those that failed for this reason
    #[param(value_type = Option<Reason>, inline)]
    reason: Option<outcome::Reason>,
    /// Only those of this host
    host: Option<String>,
    /// Only those that failed longer ago: `30m`, `2h`, `1d`
    #[serde(default, with = "duration::optional")]
    #[param(value_type = Option<String>)]
    older_than: Option<Duration>,
    /// The position to continue at: `next` of the previous page
    cursor: Option<String>,
}

/// A page of dead letters
#[derive(Serialize, ToSchema)]
pub(crate) struct DeadLetters {
    /// In no particular order. A dead letter may be on two pages
    dead_letters: Vec<DeadLetter>,
    /// The cursor of the next page, which may be empty; absent on the last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// The dead letters to replay or to purge. At least one member besides `cursor` must be given
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selection {
    /// All dead letters
    #[serde(default)]
    all: bool,
    /// Only those of this crawl
    #[schema(value_type = Option<String>)]
    crawl: Option<CrawlId>,
    /// Only those of this spider
    #[schema(value_type = Option<String>)]
    spider: Option<SpiderName>,
    /// Only these URLs, and texts that are not URLs
    #[serde(default)]
    urls: Vec<String>,
    /// Only those that failed for this reason
    #[schema(value_type = Option<Reason>)]
    reason: Option<outcome::Reason>,
    /// Only those of this host
    host: Option<String>,
    /// Only those that failed longer ago: `30m`, `2h`, `1d`
    #[serde(default, with = "duration::optional")]
    #[schema(value_type = Option<String>)]
    older_than: Option<Duration>,
    /// The position to continue at: `next` of the previous response
    cursor: Option<String>,
}

/// The result of a replay
#[derive(Serialize, ToSchema)]
pub(crate) struct Replayed {
    /// The number of dead letters sent again
    sent: u64,
    /// The crawls that they are in now: those of a crawl that is over are in a new one
    crawls: BTreeSet<String>,
    /// There is more to do: repeat the request with this `cursor`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// The result of a purge
#[derive(Serialize, ToSchema)]
pub(crate) struct Purged {
    /// The number of dead letters removed
    purged: u64,
    /// There is more to do: repeat the request with this `cursor`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// URLs that failed or expired, and texts that are not URLs. Listing them removes none
#[utoipa::path(
    get, path = "/api/v1/dead-letters", tag = "dead letters", security(("token" = [])),
    params(Listing),
    responses((status = 200, body = DeadLetters), (status = 404, description = "There is no such crawl"))
)]
pub(crate) async fn list_dead_letters(
    State(api): State<Arc<Api>>,
    identity: Identity,
    Params(listing): Params<Listing>,
) -> Result<axum::Json<DeadLetters>, Problem> {
    let Listing { crawl, spider, url, reason, host, older_than, cursor } = listing;
    let filter = Filter { urls: url.clone().into_iter().collect(), reason, host, older_than };
    let _place = api.searchers.wait(&identity, REQUEST_TIMEOUT).await?;
    let mut walk = Walk::new(&api, crawl, spider, filter, cursor).await?;
    let mut dead_letters = Vec::new();
    match url {
        Some(url) => {
            for failed in walk.named(&url).await? {
                dead_letters.push(in_full(&api, failed).await?);
            }
        }
        None => {
            while let Some((_, page)) = walk.next().await? {
                dead_letters.extend(page.into_iter().map(DeadLetter::from));
                if !dead_letters.is_empty() {
                    break;
                }
            }
        }
    }
    Ok(axum::Json(DeadLetters { dead_letters, next: walk.cursor() }))
}

/// Returns a dead letter with its request, if it is one.
async fn in_full(api: &Api, failed: Failed) -> Result<DeadLetter, Problem> {
    let work = match failed.key().filter(Key::is_request) {
        Some(key) => api.backend.control.readable_work(&failed.crawl, &key).await?,
        None => None,
    };
    Ok(DeadLetter::from(failed).asking(work.as_ref()))
}

/// The number of dead letters
#[derive(Serialize, ToSchema)]
pub(crate) struct Counted {
    count: u64,
    /// Whether there may be more: of dead letters that match a filter, at most 10,000 are counted
    more: bool,
}

/// The number of dead letters, in total or that match a filter
#[utoipa::path(
    get, path = "/api/v1/dead-letters/count", tag = "dead letters", security(("token" = [])),
    params(Listing),
    responses((status = 200, body = Counted), (status = 404, description = "There is no such crawl"))
)]
pub(crate) async fn count_dead_letters(
    State(api): State<Arc<Api>>,
    identity: Identity,
    Params(listing): Params<Listing>,
) -> Result<axum::Json<Counted>, Problem> {
    let Listing { crawl, spider, url, reason, host, older_than, cursor } = listing;
    let filter = Filter { urls: url.clone().into_iter().collect(), reason, host, older_than };
    let _place = api.searchers.wait(&identity, REQUEST_TIMEOUT).await?;
    let is_of_all = filter.is_empty() && cursor.is_none();
    let mut walk = Walk::new(&api, crawl, spider, filter, cursor).await?;
    let (count, more) = match url {
        Some(url) => (walk.named(&url).await?.len() as u64, false),
        None if is_of_all => (walk.count_all().await?, false),
        None => walk.count().await?,
    };
    Ok(axum::Json(Counted { count, more }))
}

/// Sends URLs again, with no failure counted
#[utoipa::path(
    post, path = "/api/v1/dead-letters/replay", tag = "dead letters", security(("token" = [])), request_body = Selection,
    responses(
        (status = 200, body = Replayed),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "Another crawl of the spider is being fed")
    )
)]
pub(crate) async fn replay_dead_letters(
    State(api): State<Arc<Api>>,
    Json(selection): Json<Selection>,
) -> Result<axum::Json<Replayed>, Problem> {
    let mut walk = selection.walk(&api).await?;
    let (mut sent, mut crawls) = (0, BTreeSet::new());
    let mut replay: Option<Replay<'_>> = None;
    while let Some((crawl, page)) = walk.next().await? {
        if replay.as_ref().is_some_and(|replay| *replay.source() != crawl.crawl_ref()) {
            close(&api, replay.take()).await?;
        }
        if !page.is_empty() {
            let of_crawl = match replay.take() {
                Some(replay) => replay,
                None => Replay::new(&crawl, &*api.backend.engine, &*api.backend.stats).await?,
            };
            sent += of_crawl.send(&page).await?;
            crawls.insert(of_crawl.target().id.to_string());
            replay = Some(of_crawl);
        }
    }
    close(&api, replay).await?;
    Ok(axum::Json(Replayed { sent, crawls, next: walk.cursor() }))
}

/// Removes dead letters permanently; the crawls' counters stay
#[utoipa::path(
    post, path = "/api/v1/dead-letters/purge", tag = "dead letters", security(("token" = [])), request_body = Selection,
    responses(
        (status = 200, body = Purged), (status = 404, description = "There is no such crawl")
    )
)]
pub(crate) async fn purge_dead_letters(
    State(api): State<Arc<Api>>,
    Json(selection): Json<Selection>,
) -> Result<axum::Json<Purged>, Problem> {
    let mut walk = selection.walk(&api).await?;
    let mut purged = 0;
    while let Some((crawl, page)) = walk.next().await? {
        purged += dead_letters::purge(&*api.backend.control, &crawl.crawl_ref(), &page).await?;
    }
    Ok(axum::Json(Purged { purged, next: walk.cursor() }))
}

async fn close(api: &Api, replay: Option<Replay<'_>>) -> Result<(), Problem> {
    match replay {
        Some(replay) => Ok(replay.close(&*api.backend.control).await?),
        None => Ok(()),
    }
}

impl Selection {
    /// Returns a walk through the selection. Selecting everything must be explicit.
    async fn walk(self, api: &Api) -> Result<Walk<'_>, Problem> {
        let Self { all, crawl, spider, urls, reason, host, older_than, cursor } = self;
        let filter = Filter { urls, reason, host, older_than };
        let is_choice = !filter.is_empty() || crawl.is_some() || spider.is_some();
        if all == is_choice {
            let detail = "say which dead letters are meant, or `\"all\": true` for every one";
            return Err(Problem::malformed(detail));
        }
        Walk::new(api, crawl, spider, filter, cursor).await
    }
}

/// The position of a walk: the crawl by its start and its id, and the position in its list.
type ListPosition = (u64, CrawlId, u64);

/// The dead letters that match a filter, page by page, crawl by crawl, the newest first, within the time of
/// one request.
struct Walk<'a> {
    api: &'a Api,
    filter: Filter,
    /// The remaining crawls, the next one last.
    crawls: Vec<CrawlStats>,
    /// The position in the list of the next crawl.
    scan: u64,
    until: Instant,
}

impl<'a> Walk<'a> {
    async fn new(
        api: &'a Api,
        crawl: Option<CrawlId>,
        spider: Option<SpiderName>,
        filter: Filter,
        cursor: Option<String>,
    ) -> Result<Self, Problem> {
        let from: Option<ListPosition> = cursor.as_deref().map(cursor::decode).transpose()?;
        let mut crawls = match crawl {
            Some(id) => vec![api.known(&id).await?.stats],
            None => api.backend.stats.crawls().await?,
        };
        crawls.retain(|stats| spider.as_ref().is_none_or(|spider| *spider == stats.spider));
        crawls.sort_by(|one, other| (one.started, &one.crawl).cmp(&(other.started, &other.crawl)));
        let mut scan = 0;
        if let Some((started, id, place)) = from {
            crawls.retain(|stats| (stats.started.0, &stats.crawl) <= (started, &id));
            scan = crawls.last().filter(|next| next.crawl == id).map_or(0, |_| place);
        }
        Ok(Self { api, filter, crawls, scan, until: Instant::now() + REQUEST_TIMEOUT })
    }

    /// Returns the next page, all of one crawl, which may be empty; `None` at the end, or when it is time to
    /// answer.
    async fn next(&mut self) -> Result<Option<(CrawlStats, Vec<Failed>)>, Problem> {
        let Some(crawl) = self.crawls.last().filter(|_| Instant::now() < self.until).cloned() else {
            return Ok(None);
        };
        let control = &*self.api.backend.control;
        let page = dead_letters::page(control, &crawl.crawl_ref(), self.scan, &self.filter).await?;
        self.scan = page.next.unwrap_or_default();
        if page.next.is_none() {
            self.crawls.pop();
        }
        Ok(Some((crawl, page.dead_letters)))
    }

    /// Returns the total length of the lists of all crawls.
    async fn count_all(&self) -> Result<u64, Problem> {
        let control = &*self.api.backend.control;
        let of_crawl = async |crawl: &CrawlStats| control.count_failed(&crawl.crawl_ref()).await;
        let counted = stream::iter(&self.crawls).map(of_crawl).buffer_unordered(COUNT_CONCURRENCY);
        Ok(counted.try_fold(0, async |sum, count| Ok(sum + count)).await?)
    }

    /// Returns the number of matches, and whether there may be more.
    async fn count(&mut self) -> Result<(u64, bool), Problem> {
        self.until = Instant::now() + COUNT_TIMEOUT;
        // A dead letter may be on two pages.
        let mut found = HashSet::new();
        while found.len() < MAX_COUNT
            && let Some((crawl, page)) = self.next().await?
        {
            found.extend(page.into_iter().map(|failed| (crawl.crawl.clone(), failed.url)));
        }
        Ok((found.len() as u64, !self.crawls.is_empty()))
    }

    /// Returns all dead letters for one text.
    async fn named(&mut self, text: &str) -> Result<Vec<Failed>, Problem> {
        let mut found = Vec::new();
        while let Some(crawl) = self.crawls.pop() {
            let control = &*self.api.backend.control;
            found.extend(dead_letters::named(control, &crawl.crawl_ref(), text).await?);
        }
        let now = trawl_common::time::UnixMs::now();
        found.retain(|failed| self.filter.takes(failed, now));
        Ok(found)
    }

    /// Returns the position for the next request; `None` at the end.
    fn cursor(&self) -> Option<String> {
        let next = self.crawls.last()?;
        let place: ListPosition = (next.started.0, next.crawl.clone(), self.scan);
        Some(cursor::encode(&place))
    }
}
