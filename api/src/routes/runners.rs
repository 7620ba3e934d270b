//! Runners: who asks for access, and who has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use trawl_common::names::{ProjectName, RunnerName};
use trawl_common::ports;
use utoipa::ToSchema;

use crate::Api;
use crate::extract::{self, Segment};
use crate::problem::Problem;
use crate::view::Time;

/// All known runners
#[derive(Serialize, ToSchema)]
pub(crate) struct Runners {
    runners: Vec<Runner>,
}

/// A machine that reaches nothing but the API
#[derive(Serialize, ToSchema)]
pub(crate) struct Runner {
    runner: String,
    /// The first digits of its key's digest, as the runner itself shows them
    fingerprint: String,
    /// When it asked for access first
    since: Time,
    /// When it asked last
    asked: Time,
    /// Whether it works through this process of the API
    working: bool,
    /// Its access by project; `requested` to all others
    access: BTreeMap<String, Access>,
}

/// The access of a runner to a project
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Access {
    /// It does the project's work, and hands work to its spiders
    Assign,
    /// It only hands work to its spiders
    Submit,
}

impl From<ports::Access> for Access {
    fn from(access: ports::Access) -> Self {
        match access {
            ports::Access::Assign => Self::Assign,
            ports::Access::Submit => Self::Submit,
        }
    }
}

impl From<Access> for ports::Access {
    fn from(access: Access) -> Self {
        match access {
            Access::Assign => Self::Assign,
            Access::Submit => Self::Submit,
        }
    }
}

impl Api {
    fn shown(&self, runner: ports::Runner) -> Runner {
        let ports::Runner { name, key, since, asked, access } = runner;
        Runner {
            working: self.relay.is_working(&name),
            runner: name.to_string(),
            fingerprint: key.fingerprint(),
            since: since.into(),
            asked: asked.into(),
            access: access
                .into_iter()
                .map(|(project, access)| (project.to_string(), access.into()))
                .collect(),
        }
    }

    /// Returns a runner, which must be known.
    async fn known_runner(&self, name: &RunnerName) -> Result<Json<Runner>, Problem> {
        let runner = self.backend.runners.runner(name).await?.ok_or_else(|| unknown(name))?;
        Ok(Json(self.shown(runner)))
    }
}

fn unknown(name: &RunnerName) -> Problem {
    Problem::not_found(format_args!("no runner {name} has asked for access: GET /api/v1/runners lists them"))
}

/// The runners that have asked for access, with the access of each
#[utoipa::path(
    get, path = "/api/v1/runners", tag = "workers", security(("token" = [])),
    responses((status = 200, body = Runners))
)]
pub(crate) async fn list_runners(State(api): State<Arc<Api>>) -> Result<Json<Runners>, Problem> {
    let runners = api.backend.runners.runners().await?;
    Ok(Json(Runners { runners: runners.into_iter().map(|runner| api.shown(runner)).collect() }))
}

/// Access to give
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAccess {
    #[schema(value_type = String)]
    project: ProjectName,
    access: Access,
}

/// Gives a runner access to a project: from then on it does the project's work, or hands work to its spiders
#[utoipa::path(
    post, path = "/api/v1/runners/{name}/access", tag = "workers", security(("token" = [])),
    params(("name" = String, Path, description = "The runner")), request_body = NewAccess,
    responses((status = 200, body = Runner), (status = 404, description = "There is no such runner"))
)]
pub(crate) async fn allow_runner(
    State(api): State<Arc<Api>>,
    Segment(name): Segment<RunnerName>,
    extract::Json(NewAccess { project, access }): extract::Json<NewAccess>,
) -> Result<Json<Runner>, Problem> {
    match api.backend.runners.allow(&name, &project, access.into()).await? {
        true => api.known_runner(&name).await,
        false => Err(unknown(&name)),
    }
}

/// Takes back a runner's access to a project: within a second it gets no more of its work, and what it holds of that is
/// handed out again
#[utoipa::path(
    delete, path = "/api/v1/runners/{name}/access/{project}", tag = "workers", security(("token" = [])),
    params(("name" = String, Path, description = "The runner"), ("project" = String, Path, description = "The project")),
    responses((status = 200, body = Runner), (status = 404, description = "There is no such runner"))
)]
pub(crate) async fn revoke_runner(
    State(api): State<Arc<Api>>,
    Segment((name, project)): Segment<(RunnerName, ProjectName)>,
) -> Result<Json<Runner>, Problem> {
    api.backend.runners.revoke(&name, Some(&project)).await?;
    api.known_runner(&name).await
}

/// The runner that was forgotten
#[derive(Serialize, ToSchema)]
pub(crate) struct Forgotten {
    runner: String,
}

/// Forgets a runner, its key and its access; the name is free for another
#[utoipa::path(
    delete, path = "/api/v1/runners/{name}", tag = "workers", security(("token" = [])),
    params(("name" = String, Path, description = "The runner")),
    responses((status = 200, body = Forgotten), (status = 404, description = "There is no such runner"))
)]
pub(crate) async fn forget_runner(
    State(api): State<Arc<Api>>,
    Segment(name): Segment<RunnerName>,
) -> Result<Json<Forgotten>, Problem> {
    match api.backend.runners.forget(&name).await? {
        true => Ok(Json(Forgotten { runner: name.to_string() })),
        false => Err(unknown(&name)),
    }
}
