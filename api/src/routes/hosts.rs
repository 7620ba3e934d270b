//! Hosts: their schedules, and blocking them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use trawl_common::web::host::HostKey;
use utoipa::ToSchema;

use crate::Api;
use crate::cursor::{self, Paging};
use crate::extract::{Params, Segment};
use crate::problem::Problem;
use crate::view::Host;

/// A page of hosts, by name
#[derive(Serialize, ToSchema)]
pub(crate) struct Hosts {
    hosts: Vec<Host>,
    /// The cursor of the next page; absent on the last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// The new state of a host
#[derive(Serialize, ToSchema)]
pub(crate) struct Blocking {
    /// The name of its schedule: the group's, if it is in one
    host: String,
    blocked: bool,
}

/// The hosts that were asked recently, that are in a back-off, or that are blocked
#[utoipa::path(
    get, path = "/api/v1/hosts", tag = "hosts", security(("token" = [])),
    params(Paging),
    responses((status = 200, body = Hosts))
)]
pub(crate) async fn list_hosts(
    State(api): State<Arc<Api>>,
    Params(listing): Params<Paging>,
) -> Result<Json<Hosts>, Problem> {
    let after: Option<String> = listing.cursor.as_deref().map(cursor::decode).transpose()?;
    let mut hosts = api.backend.hosts.hosts().await?;
    hosts.sort_by(|one, other| one.key.cmp(&other.key));
    hosts.retain(|host| after.as_deref().is_none_or(|after| host.key.as_str() > after));
    let has_more = hosts.len() > listing.limit.get();
    hosts.truncate(listing.limit.get());
    let last = hosts.last().filter(|_| has_more);
    let next = last.map(|host| cursor::encode(&host.key.as_str()));
    Ok(Json(Hosts { hosts: hosts.into_iter().map(Host::from).collect(), next }))
}

/// One host
#[utoipa::path(
    get, path = "/api/v1/hosts/{host}", tag = "hosts", security(("token" = [])),
    params(("host" = String, Path, description = "Its name, or `@NAME` for a group")),
    responses((status = 200, body = Host), (status = 404, description = "There is no such host"))
)]
pub(crate) async fn get_host(
    State(api): State<Arc<Api>>,
    Segment(host): Segment<String>,
) -> Result<Json<Host>, Problem> {
    let key = key(&api, &host)?;
    match api.backend.hosts.host(&key).await? {
        Some(host) => Ok(Json(host.into())),
        None => Err(Problem::not_found(format_args!("nothing is known of {key}: it was not asked lately"))),
    }
}

/// Blocks all requests to a host; URLs that wait for it are skipped, and stored as dead letters
#[utoipa::path(
    post, path = "/api/v1/hosts/{host}/block", tag = "hosts", security(("token" = [])),
    params(("host" = String, Path, description = "Its name, or `@NAME` for a group")),
    responses((status = 200, body = Blocking), (status = 404, description = "There is no such host"))
)]
pub(crate) async fn block_host(
    State(api): State<Arc<Api>>,
    Segment(host): Segment<String>,
) -> Result<Json<Blocking>, Problem> {
    let key = key(&api, &host)?;
    api.backend.hosts.block(&key).await?;
    Ok(Json(Blocking { host: key.to_string(), blocked: true }))
}

/// Lifts a block, or a back-off that a host asked for
#[utoipa::path(
    post, path = "/api/v1/hosts/{host}/unblock", tag = "hosts", security(("token" = [])),
    params(("host" = String, Path, description = "Its name, or `@NAME` for a group")),
    responses((status = 200, body = Blocking), (status = 404, description = "There is no such host"))
)]
pub(crate) async fn unblock_host(
    State(api): State<Arc<Api>>,
    Segment(host): Segment<String>,
) -> Result<Json<Blocking>, Problem> {
    let key = key(&api, &host)?;
    api.backend.hosts.unblock(&key).await?;
    Ok(Json(Blocking { host: key.to_string(), blocked: false }))
}

fn key(api: &Api, host: &str) -> Result<HostKey, Problem> {
    api.backend.settings.politeness.host_key(host).map_err(Problem::not_found)
}
