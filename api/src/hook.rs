//! The calls of Git servers, which say that somebody has pushed to a project's branch.
//!
//! A call is believed if it is signed with the project's secret, and only that there may be something new: the commit is
//! asked of the repository itself, so that a call which is sent again changes nothing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use serde::Serialize;
use trawl_common::names::ProjectName;
use trawl_common::project::{HookSecret, Wanted, push};
use trawl_common::projects::pull;

use crate::Api;
use crate::extract::{Segment, body};
use crate::limits::Caller;
use crate::peer::Peer;
use crate::problem::{Kind, Problem};

/// The headers with a signature: of GitHub, Gitea and Gogs.
const SIGNATURES: [&str; 3] = ["x-hub-signature-256", "x-gitea-signature", "x-gogs-signature"];

/// The headers with the event that a call is about.
const EVENTS: [&str; 3] = ["x-github-event", "x-gitea-event", "x-gogs-event"];

/// The answer to a call
#[derive(Serialize)]
struct Heard {
    /// The commit that is to run; nothing if the call is about something else
    commit: Option<String>,
}

/// Returns the route, which is guarded by signatures and not by tokens.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new().route("/api/v1/projects/{project}/hook", post(hear))
}

async fn hear(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
    request: Request,
) -> Result<Json<Heard>, Problem> {
    let (head, read) = request.into_parts();
    let caller = Caller::Address(Peer::of(&head.extensions));
    api.hooks.calls.check(&caller)?;
    let signature = text(&head.headers, &SIGNATURES).unwrap_or_default().to_owned();
    let event = text(&head.headers, &EVENTS).unwrap_or_default().to_owned();
    let bytes = body(Request::from_parts(head, read)).await?;
    let made = api.backend.projects.project(&project).await?;
    // No difference tells strangers which projects there are.
    let secret = match (&made, api.backend.settings.secrets.key()) {
        (Some(made), Ok(Some(key))) => Some(HookSecret::new(&key, &project, made.created)),
        _ => None,
    };
    if !secret.is_some_and(|secret| secret.has_signed(&bytes, &signature)) {
        api.hooks.strangers.check(&caller)?;
        let detail = "no signature of this project's secret (`trawl project hook`) is on this call";
        return Err(Problem::new(Kind::Unauthorized, detail));
    }
    let source = made.and_then(|made| made.source);
    let Some(source) = source.filter(|_| event == "push") else { return Ok(Json(Heard { commit: None })) };
    if !push(&bytes, &source.branch).map_err(Problem::malformed)? {
        return Ok(Json(Heard { commit: None }));
    }
    let tip = (api.backend.tip)(source).await;
    let Wanted { commit, .. } = pull(&*api.backend.projects, &project, tip).await?;
    Ok(Json(Heard { commit: Some(commit.to_string()) }))
}

fn text<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok())
}
