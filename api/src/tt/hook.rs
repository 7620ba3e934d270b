//! Calls of Git servers about any repository.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use trawl_common::project::Project;

use super::TaskTracker;
use super::answer::Answer;
use crate::hook::Call;
use crate::problem::{Kind, Problem};

/// Maximum number of projects whose code comes from one repository.
const MAX_PROJECTS: usize = 16;

/// The part of a call that says which repository it is about.
#[derive(Deserialize)]
struct Push {
    repository: Repository,
}

#[derive(Deserialize)]
struct Repository {
    clone_url: Option<String>,
    ssh_url: Option<String>,
    html_url: Option<String>,
}

impl Repository {
    fn is_of(&self, project: &Project) -> bool {
        let Some(source) = &project.source else { return false };
        let plain = |url: &str| url.trim_end_matches('/').trim_end_matches(".git").to_owned();
        let own = plain(source.clone_url.as_str());
        [&self.clone_url, &self.ssh_url, &self.html_url].into_iter().flatten().any(|url| plain(url) == own)
    }
}

/// Hears of a push to a repository, with the signature of one of the projects whose code comes from there.
pub(super) async fn hear(State(tt): State<Arc<TaskTracker>>, request: Request) -> Answer {
    let api = &tt.api;
    let call = Call::read(api, request).await?;
    let Push { repository } = serde_json::from_slice(&call.body)
        .map_err(|error| Problem::malformed(format_args!("body: {error}")))?;
    let made = api.backend.projects.made().await?;
    for project in made.into_iter().filter(|project| repository.is_of(project)).take(MAX_PROJECTS) {
        if call.is_signed_for(api, &project.name, project.created) {
            call.carry_out(api, &project.name, project.source).await?;
            return Ok(StatusCode::OK.into_response());
        }
    }
    call.check_stranger(api)?;
    let detail = "no signature of a project with this repository (`trawl project hook`) is on this call";
    Err(Problem::new(Kind::Unauthorized, detail).into())
}
