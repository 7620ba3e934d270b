//! The calls of Git servers, which say that somebody has pushed to a project's branch.
//!
//! A call is believed if it is signed with the project's secret, and only that there may be something new: the commit is
//! asked of the repository itself, so that a call which is sent again changes nothing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use serde::Serialize;
use trawl_common::names::ProjectName;
use trawl_common::project::{Commit, HookSecret, Source, Wanted, push};
use trawl_common::projects::pull;
use trawl_common::time::UnixMs;

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
    let call = Call::read(&api, request).await?;
    let code = api.backend.projects.code(std::slice::from_ref(&project)).await?.pop().flatten();
    // No difference tells strangers which projects there are.
    match code {
        Some(code) if call.is_signed_for(&api, &project, code.created) => {
            let commit = call.carry_out(&api, &project, code.source).await?;
            Ok(Json(Heard { commit: commit.map(|commit| commit.to_string()) }))
        }
        _ => {
            call.check_stranger(&api)?;
            let detail = "no signature of this project's secret (`trawl project hook`) is on this call";
            Err(Problem::new(Kind::Unauthorized, detail))
        }
    }
}

/// A call of a Git server.
pub(crate) struct Call {
    caller: Caller,
    signature: String,
    event: String,
    pub(crate) body: Bytes,
}

impl Call {
    /// Reads a call, unless too many came from its address.
    pub(crate) async fn read(api: &Api, request: Request) -> Result<Self, Problem> {
        let (head, read) = request.into_parts();
        let caller = Caller::Address(Peer::of(&head.extensions));
        api.hooks.calls.check(&caller)?;
        let signature = text(&head.headers, &SIGNATURES).unwrap_or_default().to_owned();
        let event = text(&head.headers, &EVENTS).unwrap_or_default().to_owned();
        let body = body(Request::from_parts(head, read)).await?;
        Ok(Self { caller, signature, event, body })
    }

    /// Returns whether it has the signature of a project that was made at that time.
    pub(crate) fn is_signed_for(&self, api: &Api, project: &ProjectName, created: UnixMs) -> bool {
        let Ok(Some(key)) = api.backend.settings.secrets.key() else { return false };
        HookSecret::new(&key, project, created).has_signed(&self.body, &self.signature)
    }

    /// Counts it as one without a signature.
    pub(crate) fn check_stranger(&self, api: &Api) -> Result<(), Problem> {
        api.hooks.strangers.check(&self.caller)
    }

    /// Asks the repository of a project for its latest commit, if somebody has pushed to its branch. Returns that commit.
    pub(crate) async fn carry_out(
        &self,
        api: &Api,
        project: &ProjectName,
        source: Option<Source>,
    ) -> Result<Option<Commit>, Problem> {
        let Some(source) = source.filter(|_| self.event == "push") else { return Ok(None) };
        if !push(&self.body, &source.branch).map_err(Problem::malformed)? {
            return Ok(None);
        }
        let tip = (api.backend.tip)(source).await;
        let Wanted { commit, .. } = pull(&*api.backend.projects, project, tip).await?;
        Ok(Some(commit))
    }
}

fn text<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok())
}
