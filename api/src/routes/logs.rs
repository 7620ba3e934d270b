//! The fleet's log: one page, all of it as lines, or new entries as they come.

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
use trawl_common::fleet_log::{LogPage, newer, newest};
use trawl_common::logs::LogFilter;
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::ports::{LogLine, LogPart, LogPlace};
use trawl_common::time::UnixMs;
use trawl_common::{logs, text};
use utoipa::{IntoParams, ToSchema};

use super::items::{LINES, accepts};
use crate::Api;
use crate::cursor::{self, Limit};
use crate::extract::Params;
use crate::identity::Identity;
use crate::permits::Permit;
use crate::problem::Problem;
use crate::view::{LogEntry, LogLevel};

/// The time that a caller waits for the searches of others.
pub(super) const SEARCH_QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the log is read for each follower.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// The media type of server-sent events.
const EVENTS: &str = "text/event-stream";
/// The number of entries read at a time for a caller who wants all.
const READ_BATCH: usize = 500;

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
    /// Only those with this host
    host: Option<String>,
    /// Only those of this level, or more severe
    #[param(value_type = Option<LogLevel>, inline)]
    level: Option<logs::LogLevel>,
    /// Only those about this URL, or about the task with this key
    task: Option<String>,
    /// Only those no older than this: `30m`, `2h`, `1d`
    #[serde(default, with = "duration::optional")]
    #[param(value_type = Option<String>)]
    since: Option<Duration>,
    /// The maximum number of entries
    #[serde(default)]
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit,
    /// The position to continue at: `next` of the previous page
    cursor: Option<String>,
}

/// A page of the log
#[derive(Serialize, ToSchema)]
pub(crate) struct Logs {
    /// The entries, the last ones first. May be empty although others follow
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
    /// The position of the entry: if it is sent as `Last-Event-ID`, the stream continues after it
    id: String,
    event: EntryName,
    /// The entry as JSON
    data: String,
}

/// The kind of event
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "the document's alone")]
enum EntryName {
    /// An entry
    Entry,
}

impl Listing {
    /// Returns the filter, the position to start at, and the maximum number of entries.
    fn read(self) -> Result<(LogFilter, LogPlace, usize), Problem> {
        let Self { crawl, spider, host, level, task: key, since, limit, cursor } = self;
        let ago = |age: Duration| UnixMs(UnixMs::now().0.saturating_sub(age.as_millis() as u64));
        let filter = LogFilter { crawl, spider, host, level, key, since: since.map(ago) };
        let place = cursor::decode_log(cursor.as_deref())?;
        Ok((filter, place, limit.get()))
    }
}

/// Failures, retries and other problems in the whole fleet: one page, the last entries first. If the request
/// accepts `application/jsonl`, all entries from `cursor` on, one per line; if it accepts
/// `text/event-stream`, new entries from now on, or after `Last-Event-ID`, as events `entry`. Only the last
/// entries are stored
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
        let reading = Reading { _permit: api.followers.take(&identity)?, api, filter, from: Some(place) };
        let lines = Body::from_stream(lines(reading));
        return Ok(([(CONTENT_TYPE, HeaderValue::from_static(LINES))], lines).into_response());
    }
    let _permit = api.searchers.wait(&identity, SEARCH_QUEUE_TIMEOUT).await?;
    let LogPage { lines, older, .. } = newest(&*api.backend.logs, &filter, place, limit).await?;
    let entries = lines.into_iter().map(|line| line.entry.into()).collect();
    let next = older.map(cursor::encode_log);
    Ok(axum::Json(Logs { entries, next }).into_response())
}

/// Streams new entries of the log.
async fn follow(
    api: Arc<Api>,
    identity: &Identity,
    filter: LogFilter,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let permit = api.followers.take(identity)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let after = match last {
        Some(place) => place,
        None => newest(&*api.backend.logs, &filter, LogPlace::END, 0).await?.end,
    };
    let following = Following { _permit: permit, api, filter, after, ready: Vec::new().into_iter() };
    Ok(Sse::new(unfold(following, next)).keep_alive(KeepAlive::default()).into_response())
}

/// A reader of all entries.
struct Reading {
    api: Arc<Api>,
    filter: LogFilter,
    /// The position to continue at; `None` at the end.
    from: Option<LogPlace>,
    _permit: Permit,
}

/// Streams each entry as a line, the last first. An error while reading aborts the response.
fn lines(reading: Reading) -> impl Stream<Item = io::Result<Bytes>> {
    try_unfold(reading, async |mut reading: Reading| {
        let Some(from) = reading.from else { return Ok(None) };
        let page = newest(&*reading.api.backend.logs, &reading.filter, from, READ_BATCH).await;
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

/// A follower of the log.
struct Following {
    api: Arc<Api>,
    filter: LogFilter,
    after: LogPlace,
    /// The entries read but not sent yet.
    ready: std::vec::IntoIter<LogLine>,
    _permit: Permit,
}

/// Waits for the next entry; `None` when the API stops. Waits for a server that is unavailable.
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
            following.api.watchers.stop().run_until_cancelled(tokio::time::sleep(READ_INTERVAL)).await?;
        }
    }
}

/// Formats an entry on one line, safe to show in a terminal.
fn json(line: LogLine) -> String {
    // Names and texts always serialise.
    text::escape_json(&serde_json::to_string(&line.entry).unwrap_or_default())
}
