//! The items of a crawl: one page, or all of them as lines.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use futures::stream::try_unfold;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use trawl_common::names::CrawlId;
use trawl_common::ports::{ItemReader, ItemsFrom};
use trawl_common::spider::item::Item;
use trawl_common::time::UnixMs;
use utoipa::ToSchema;

use crate::Api;
use crate::cursor::{self, Paging};
use crate::extract::{Params, Segment};
use crate::identity::Identity;
use crate::permits::Permit;
use crate::problem::{Kind, Problem};

/// Maximum time for reading one page; then the next request continues.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of bytes of items after which a page is full.
const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum time by which the broker's clock, which dates stored items, may be behind that of the fleet.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(300);
/// The media type of JSON lines.
pub(crate) const LINES: &str = "application/jsonl";

/// A page of items, in the order in which they were stored
#[derive(Serialize, ToSchema)]
pub(crate) struct Items {
    /// May be empty although others follow. An item that was stored twice because of a crash comes twice,
    /// with the same `id`
    #[schema(value_type = Vec<serde_json::Value>)]
    items: Vec<Item>,
    /// The cursor of the next page; absent after the last item of a crawl that is over
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// The items of a crawl, as a page, or, if the request accepts `application/jsonl`, all from `cursor` on, one
/// per line. They are read from the fleet's stream of items, as far back as it goes
#[utoipa::path(
    get, path = "/api/v1/crawls/{id}/items", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id"), Paging),
    responses(
        (status = 200, content((Items = "application/json"), (String = "application/jsonl"))),
        (status = 404, description = "There is no such crawl"),
        (status = 409, description = "The stream of items was begun anew, and the cursor is of the one before"),
        (status = 501, description = "Items of a state file are in files")
    )
)]
pub(crate) async fn list_items(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<CrawlId>,
    Params(Paging { limit, cursor }): Params<Paging>,
    identity: Identity,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let place = cursor.as_deref().map(cursor::decode).transpose()?;
    // Before the items are read: if the crawl is over by now, all its items are there.
    let known = api.known(&id).await?;
    let begun = UnixMs(known.stats.started.0.saturating_sub(MAX_CLOCK_SKEW.as_millis() as u64));
    let from = place.map_or(ItemsFrom::Time(begun), ItemsFrom::Place);
    let reading = Reading::new(&api, &identity, &id, from).await?;
    if accepts(&headers, LINES) {
        let lines = Body::from_stream(lines(reading));
        return Ok(([(CONTENT_TYPE, HeaderValue::from_static(LINES))], lines).into_response());
    }
    let (items, is_end, place) = page(reading, limit.get()).await?;
    let next = (!is_end || !known.has_ended()).then(|| cursor::encode(&place));
    Ok(axum::Json(Items { items, next }).into_response())
}

/// A reader of items.
struct Reading {
    items: Box<dyn ItemReader>,
    _permit: Permit,
}

impl Reading {
    async fn new(api: &Api, identity: &Identity, crawl: &CrawlId, from: ItemsFrom) -> Result<Self, Problem> {
        let Some(items) = &api.backend.items else {
            let detail =
                "the items of a state file are in the files that `--out` or `[[sinks]]` of its crawls named";
            return Err(Problem::new(Kind::NotKept, detail));
        };
        // Each reader has its own connection to the broker.
        let permit = api.readers.take(identity)?;
        Ok(Self { items: items.read(crawl, from).await?, _permit: permit })
    }
}

/// Returns up to `most` items, whether they are the last ones, and the position after them.
async fn page(mut reading: Reading, most: usize) -> Result<(Vec<Item>, bool, u64), Problem> {
    let until = Instant::now() + READ_TIMEOUT;
    let (mut items, mut bytes) = (Vec::new(), 0);
    while items.len() < most && bytes < PAGE_BYTES {
        match timeout_at(until, reading.items.next()).await {
            Ok(Ok(Some(stored))) => {
                bytes += stored.bytes;
                items.push(stored.item);
            }
            Ok(Ok(None)) => return Ok((items, true, reading.items.place())),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok((items, false, reading.items.place()))
}

/// Streams each item as a line. An error while reading aborts the response.
fn lines(reading: Reading) -> impl Stream<Item = io::Result<Bytes>> {
    try_unfold(reading, line)
}

async fn line(mut reading: Reading) -> io::Result<Option<(Bytes, Reading)>> {
    let Some(stored) = reading.items.next().await.map_err(io::Error::other)? else { return Ok(None) };
    let mut line = serde_json::to_vec(&stored.item)?;
    line.push(b'\n');
    Ok(Some((line.into(), reading)))
}

/// Whether a request accepts this media type by name.
pub(crate) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let types = accepted.flat_map(|value| value.split(','));
    types
        .map(|kind| kind.split(';').next().unwrap_or_default().trim())
        .any(|kind| kind.eq_ignore_ascii_case(wanted))
}
