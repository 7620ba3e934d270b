//! The fleet's log: a page of it, lines to its beginning, or what comes as it comes.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use futures::stream::{try_unfold, unfold};
use serde::{Deserialize, Serialize};
use tracing::debug;
use trawl_common::duration;
use trawl_common::logs::{LogFilter, LogPage, newer, newest};
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::ports::{LogLine, LogPart, LogPlace};
use trawl_common::time::UnixMs;
use trawl_common::{logs, text};
use utoipa::{IntoParams, ToSchema};

use super::items::{LINES, accepts};
use crate::Api;
use crate::access::Identity;
use crate::cursor::{self, Limit};
use crate::extract::Params;
use crate::places::Place;
use crate::problem::Problem;
use crate::view::{LogEntry, LogLevel};

/// How long somebody waits for the searches of others.
const SEARCH: Duration = Duration::from_secs(10);
/// How often the log is looked at for each of those who follow it.
const LOOK: Duration = Duration::from_secs(1);
/// The type of server-sent events.
const EVENTS: &str = "text/event-stream";
/// How many entries are read at a time for one who wants all.
const READ: usize = 500;

/// Which entries.
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
    /// Only those with this host
    host: Option<String>,
    /// Only those as grave as this, or graver
    #[param(value_type = Option<LogLevel>, inline)]
    level: Option<logs::LogLevel>,
    /// Only those about this URL, or about the task with this key
    task: Option<String>,
    /// Only those that are no older: `30m`, `2h`, `1d`
    #[serde(default, with = "duration::optional")]
    #[param(value_type = Option<String>)]
    since: Option<Duration>,
    /// How many at most
    #[serde(default)]
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit,
    /// Where to go on: `next` of the page before
    cursor: Option<String>,
}

/// A page of the log
#[derive(Serialize, ToSchema)]
pub(crate) struct Logs {
    /// The last ones first. May be empty although others follow
    entries: Vec<LogEntry>,
    /// The cursor of the next page, with older entries; absent on the last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// An event of the stream
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's alone")]
pub(crate) struct Appended {
    /// Where the entry stands: sent back as `Last-Event-ID`, the stream goes on behind it
    id: String,
    event: EntryName,
    /// The entry as JSON
    data: String,
}

/// What an event is about
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "the document's alone")]
enum EntryName {
    /// An entry
    Entry,
}

impl Listing {
    /// Which entries are meant, where a list of them goes on, and how many it has.
    fn read(self) -> Result<(LogFilter, LogPlace, usize), Problem> {
        let Self { crawl, spider, host, level, task: key, since, limit, cursor } = self;
        let ago = |age: Duration| UnixMs(UnixMs::now().0.saturating_sub(age.as_millis() as u64));
        let filter = LogFilter { crawl, spider, host, level, key, since: since.map(ago) };
        let place = cursor.as_deref().map(cursor::decode::<(u64, u64)>).transpose()?;
        let place = place.map_or(LogPlace::END, |(first, second)| LogPlace(first, second));
        Ok((filter, place, limit.get()))
    }
}

/// What failed, was tried again or got in the way in the whole fleet: a page of it, the last first. To a request that accepts
/// `application/jsonl` all that there is from `cursor` on, one entry a line; to one that accepts `text/event-stream` what comes from now on,
/// or behind `Last-Event-ID`, as events `entry`. Only the last entries are kept
#[utoipa::path(
    get, path = "/api/v1/logs", tag = "logs", security(("token" = [])),
    params(Listing),
    responses(
        (status = 200, content(
            (Logs = "application/json"), (String = "application/jsonl"), (Appended = "text/event-stream")
        ))
    )
)]
pub(crate) async fn list_logs(
    State(api): State<Arc<Api>>,
    Params(listing): Params<Listing>,
    identity: Identity,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (filter, place, limit) = listing.read()?;
    if accepts(&headers, EVENTS) {
        return follow(api, &identity, filter, &headers).await;
    }
    if accepts(&headers, LINES) {
        let reading = Reading { _place: api.followers.take(&identity)?, api, filter, from: Some(place) };
        let lines = Body::from_stream(lines(reading));
        return Ok(([(CONTENT_TYPE, HeaderValue::from_static(LINES))], lines).into_response());
    }
    let _place = api.searchers.wait(&identity, SEARCH).await?;
    let LogPage { lines, older, .. } = newest(&*api.backend.logs, &filter, place, limit).await?;
    let entries = lines.into_iter().map(|line| line.entry.into()).collect();
    let next = older.map(|LogPlace(first, second)| cursor::encode(&(first, second)));
    Ok(axum::Json(Logs { entries, next }).into_response())
}

/// What is appended to the log, as it comes.
async fn follow(
    api: Arc<Api>,
    identity: &Identity,
    filter: LogFilter,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let place = api.followers.take(identity)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let after = match last {
        Some(place) => place,
        None => newest(&*api.backend.logs, &filter, LogPlace::END, 0).await?.end,
    };
    let following = Following { _place: place, api, filter, after, ready: Vec::new().into_iter() };
    Ok(Sse::new(unfold(following, next)).keep_alive(KeepAlive::default()).into_response())
}

/// Somebody who wants all entries that there are.
struct Reading {
    api: Arc<Api>,
    filter: LogFilter,
    /// Where to go on; `None` at the end.
    from: Option<LogPlace>,
    _place: Place,
}

/// Each entry as a line, the last first. Where reading breaks off, so does the answer.
fn lines(reading: Reading) -> impl Stream<Item = io::Result<Bytes>> {
    try_unfold(reading, async |mut reading: Reading| {
        let Some(from) = reading.from else { return Ok(None) };
        let page = newest(&*reading.api.backend.logs, &reading.filter, from, READ).await;
        let LogPage { lines, older, .. } = page.map_err(io::Error::other)?;
        reading.from = older;
        let mut text = String::new();
        for line in lines {
            text.push_str(&json(line));
            text.push('\n');
        }
        Ok(Some((text.into(), reading)))
    })
}

/// Somebody who follows the log.
struct Following {
    api: Arc<Api>,
    filter: LogFilter,
    after: LogPlace,
    /// What was read and not sent yet.
    ready: std::vec::IntoIter<LogLine>,
    _place: Place,
}

/// The next entry, as soon as there is one; nothing when the API stops. A server that is away is waited for.
async fn next(mut following: Following) -> Option<(Result<Event, Infallible>, Following)> {
    loop {
        if let Some(line) = following.ready.next() {
            let event = Event::default().event("entry").id(line.place.to_string());
            return Some((Ok(event.data(json(line))), following));
        }
        let Following { api, filter, after, .. } = &following;
        let read = newer(&*api.backend.logs, filter, *after).await;
        let has_more = read.as_ref().is_ok_and(|part| part.has_more || !part.lines.is_empty());
        match read {
            Ok(LogPart { lines, next, .. }) => (following.ready, following.after) = (lines.into_iter(), next),
            Err(error) => debug!(%error, "cannot look at a log that callers follow"),
        }
        if !has_more {
            following.api.watchers.stop().run_until_cancelled(tokio::time::sleep(LOOK)).await?;
        }
    }
}

/// An entry on one line, harmless to whoever shows it.
fn json(line: LogLine) -> String {
    // Names and texts: they always serialise.
    text::escape_json(&serde_json::to_string(&line.entry).unwrap_or_default())
}
