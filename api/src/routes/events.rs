//! The progress of a crawl as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;
use serde::Serialize;
use trawl_common::names::CrawlId;
use utoipa::ToSchema;

use crate::Api;
use crate::extract::Segment;
use crate::identity::Identity;
use crate::problem::Problem;
use crate::view::Crawl;
use crate::watch::Watch;

/// An event of the stream
#[derive(ToSchema)]
pub(crate) struct CrawlUpdate {
    event: Name,
    /// The crawl as JSON, or the problem
    data: String,
}

/// The kind of event
#[derive(Clone, Copy, ToSchema, strum::IntoStaticStr)]
#[schema(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum Name {
    /// The crawl has changed
    Progress,
    /// It is over: the last event
    End,
    /// It cannot be followed any longer: the last event
    Problem,
}

/// The progress of a crawl: the event `progress` with the crawl as JSON after each change, at most once a
/// second, and finally `end`, or `problem` if it cannot be followed any longer
#[utoipa::path(
    get, path = "/api/v1/crawls/{id}/events", tag = "crawls", security(("token" = [])),
    params(("id" = String, Path, description = "The crawl's id")),
    responses(
        (status = 200, body = CrawlUpdate, content_type = "text/event-stream"),
        (status = 404, description = "There is no such crawl")
    )
)]
pub(crate) async fn follow_crawl(
    State(api): State<Arc<Api>>,
    identity: Identity,
    Segment(id): Segment<CrawlId>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    api.known(&id).await?;
    let watch = api.watchers.watch(&identity, &id)?;
    Ok(Sse::new(unfold(Some(watch), next)).keep_alive(KeepAlive::default()))
}

/// Returns the next event, with the watch if there are more to follow.
async fn next(watch: Option<Watch>) -> Option<(Result<Event, Infallible>, Option<Watch>)> {
    let mut watch = watch?;
    let (event, is_last) = match watch.next().await? {
        Ok(known) if known.is_over() => (CrawlUpdate::new(Name::End, &Crawl::from(known)), true),
        Ok(known) => (CrawlUpdate::new(Name::Progress, &Crawl::from(known)), false),
        Err(problem) => (CrawlUpdate::new(Name::Problem, &problem.body()), true),
    };
    Some((Ok(event.into()), (!is_last).then_some(watch)))
}

impl CrawlUpdate {
    fn new(event: Name, data: &impl Serialize) -> Self {
        // Names and numbers always serialise, and JSON has no line feed.
        Self { event, data: serde_json::to_string(data).unwrap_or_default() }
    }
}

impl From<CrawlUpdate> for Event {
    fn from(CrawlUpdate { event, data }: CrawlUpdate) -> Self {
        Self::default().event(<&str>::from(event)).data(data)
    }
}
