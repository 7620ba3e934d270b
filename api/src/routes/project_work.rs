//! Commands for all work of a project's spiders.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tokio::time::Instant;
use trawl_common::names::ProjectName;
use trawl_common::project_work;
use utoipa::ToSchema;

use crate::extract::Segment;
use crate::problem::Problem;
use crate::{Api, Backend};

/// Maximum time of a reset.
const RESET_TIME: Duration = Duration::from_secs(60);

/// The number of crawls that a command was for
#[derive(Serialize, ToSchema)]
pub(crate) struct ProjectCrawls {
    crawls: u64,
}

/// Pauses the crawls of the project's spiders that are not over, with what is handed to them later. Crawls that begin later
/// run
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/pause", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses((status = 200, body = ProjectCrawls), (status = 404, description = "Nobody has made such a project"))
)]
pub(crate) async fn pause_project(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<ProjectCrawls>, Problem> {
    let Backend { stats, control, .. } = &api.backend;
    let crawls = project_work::pause(&api.known_project(&project).await?, &**stats, &**control).await?;
    Ok(Json(ProjectCrawls { crawls }))
}

/// Resumes the crawls that were paused with the project, and no other
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/resume", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses((status = 200, body = ProjectCrawls), (status = 404, description = "Nobody has made such a project"))
)]
pub(crate) async fn resume_project(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<ProjectCrawls>, Problem> {
    let Backend { stats, control, .. } = &api.backend;
    let crawls = project_work::resume(&api.known_project(&project).await?, &**stats, &**control).await?;
    Ok(Json(ProjectCrawls { crawls }))
}

/// The failed pages and tasks that were sent again
#[derive(Serialize, ToSchema)]
pub(crate) struct ProjectReset {
    sent: u64,
    /// Whether these were all; else send the request again
    complete: bool,
}

/// Sends the failed pages and tasks of the project's spiders again, with no failure counted, as far as a minute reaches
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/reset", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses(
        (status = 200, body = ProjectReset),
        (status = 404, description = "Nobody has made such a project"),
        (status = 409, description = "Another crawl of a spider is being fed"),
    )
)]
pub(crate) async fn reset_project(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<ProjectReset>, Problem> {
    let Backend { stats, control, engine, .. } = &api.backend;
    let (project, until) = (api.known_project(&project).await?, Instant::now() + RESET_TIME);
    let reset = project_work::reset(&project, &**stats, &**control, &**engine, until).await?;
    Ok(Json(ProjectReset { sent: reset.sent, complete: reset.is_complete }))
}
