//! Projects: their spiders, and the secrets of their programs.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::project::{
    self, Branch, CloneUrl, NoProjectSecret, ProjectSecret, Source, VersionReport, VersionResult,
};
use trawl_common::projects;
use utoipa::ToSchema;

use crate::Api;
use crate::extract::{self, Segment, body, media_type};
use crate::problem::{Kind, Problem};
use crate::view::Time;

/// Maximum number of spiders that one request adds or takes out.
const MAX_SPIDERS: usize = 1000;

/// The projects that people have made
#[derive(Serialize, ToSchema)]
pub(crate) struct Projects {
    projects: Vec<Project>,
}

/// A project
#[derive(Serialize, ToSchema)]
pub(crate) struct Project {
    project: String,
    /// When it was made
    created: Time,
    /// Its spiders, which are no other project's
    spiders: Vec<String>,
    /// Whether it has a secret, which nobody is told by the API
    secret: bool,
    /// The repository of its code, if that comes from Git
    clone_url: Option<String>,
    /// The branch of that
    branch: Option<String>,
    /// The commit that workers are to run
    commit: Option<String>,
    /// The result of each machine with that commit; absent in lists
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    machines: Option<Vec<MachineVersion>>,
}

/// The result of a machine with a commit
#[derive(Serialize, ToSchema)]
pub(crate) struct MachineVersion {
    /// The name of a worker's machine, or that of a runner with ` (runner)`
    machine: String,
    /// When the result was known
    at: Time,
    /// Whether it runs the commit
    taken: bool,
    /// Why it does not, with the end of the failed setup's output
    error: Option<String>,
}

impl From<VersionReport> for MachineVersion {
    fn from(VersionReport { machine, at, result, .. }: VersionReport) -> Self {
        let error = match result {
            VersionResult::Taken => None,
            VersionResult::Failed(failure) => Some(failure.into()),
        };
        Self { machine: machine.into(), at: at.into(), taken: error.is_none(), error }
    }
}

impl From<project::Project> for Project {
    fn from(project: project::Project) -> Self {
        let project::Project { name, created, spiders, has_secret, source, wanted } = project;
        let (clone_url, branch) = source.map(|Source { clone_url, branch }| (clone_url, branch)).unzip();
        Self {
            clone_url: clone_url.map(String::from),
            branch: branch.map(String::from),
            commit: wanted.map(|wanted| wanted.commit.to_string()),
            project: name.to_string(),
            created: created.into(),
            spiders: spiders.iter().map(ToString::to_string).collect(),
            secret: has_secret,
            machines: None,
        }
    }
}

impl Api {
    /// Returns a project, which must have been made.
    pub(crate) async fn known_project(&self, name: &ProjectName) -> Result<project::Project, Problem> {
        self.backend.projects.project(name).await?.ok_or_else(|| not_made(name))
    }

    /// Returns the view of a project, which must have been made.
    async fn made(&self, name: &ProjectName) -> Result<Json<Project>, Problem> {
        let project = self.known_project(name).await?;
        let reports = self.backend.projects.reports(name).await?.into_iter().map(MachineVersion::from);
        Ok(Json(Project { machines: Some(reports.collect()), ..project.into() }))
    }

    /// Adds spiders to a project that was made.
    async fn add_spiders(&self, project: &ProjectName, spiders: &[SpiderName]) -> Result<(), Problem> {
        for spider in spiders {
            let added = self.backend.projects.add_spider(project, spider).await.map_err(in_conflict)?;
            if !added {
                return Err(not_made(project));
            }
        }
        Ok(())
    }
}

fn not_made(name: &ProjectName) -> Problem {
    Problem::not_found(format_args!("nobody has made a project {name}: GET /api/v1/projects lists them"))
}

/// Returns the problem of a change that a rule of projects refuses.
fn in_conflict(error: Error) -> Problem {
    match error.kind {
        ErrorKind::Refused => Problem::new(Kind::Conflict, error),
        _ => error.into(),
    }
}

fn check_number(spiders: &[SpiderName]) -> Result<(), Problem> {
    match spiders.len() <= MAX_SPIDERS {
        true => Ok(()),
        false => Err(Problem::malformed(format_args!("name at most {MAX_SPIDERS} spiders at once"))),
    }
}

/// The projects that people have made, each with its spiders
#[utoipa::path(
    get, path = "/api/v1/projects", tag = "spiders", security(("token" = [])),
    responses((status = 200, body = Projects))
)]
pub(crate) async fn list_projects(State(api): State<Arc<Api>>) -> Result<Json<Projects>, Problem> {
    let projects = api.backend.projects.made().await?;
    Ok(Json(Projects { projects: projects.into_iter().map(Project::from).collect() }))
}

/// A project to make
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewProject {
    #[schema(value_type = String)]
    project: ProjectName,
    /// Its spiders
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    spiders: Vec<SpiderName>,
}

/// Makes a project. What its spiders do is its work, which only runners with access to it are given
#[utoipa::path(
    post, path = "/api/v1/projects", tag = "spiders", security(("token" = [])), request_body = NewProject,
    responses(
        (status = 201, body = Project),
        (status = 409, description = "There is one of that name, or a spider is another project's"),
    )
)]
pub(crate) async fn create_project(
    State(api): State<Arc<Api>>,
    extract::Json(NewProject { project, spiders }): extract::Json<NewProject>,
) -> Result<(StatusCode, Json<Project>), Problem> {
    check_number(&spiders)?;
    if !api.backend.projects.create(&project).await.map_err(in_conflict)? {
        return Err(Problem::new(Kind::Conflict, format_args!("there is a project {project}")));
    }
    api.add_spiders(&project, &spiders).await?;
    Ok((StatusCode::CREATED, api.made(&project).await?))
}

/// A project, with its spiders
#[utoipa::path(
    get, path = "/api/v1/projects/{project}", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses((status = 200, body = Project), (status = 404, description = "Nobody has made such a project"))
)]
pub(crate) async fn get_project(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<Project>, Problem> {
    api.made(&project).await
}

/// A change of a project
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectChange {
    /// Spiders that it gets
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    add_spiders: Vec<SpiderName>,
    /// Spiders that it loses
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    remove_spiders: Vec<SpiderName>,
    /// The repository and the branch that its code comes from; `null` leaves it as it is
    #[serde(default)]
    git: Option<ProjectSource>,
}

/// Where the code of a project comes from
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProjectSource {
    /// `https://…`, `ssh://…` or `file:///…`, without a password
    #[schema(value_type = String)]
    clone_url: CloneUrl,
    #[schema(value_type = String)]
    branch: Branch,
}

/// Changes a project: which spiders it has, and where its code comes from. Workers notice within seconds
#[utoipa::path(
    post, path = "/api/v1/projects/{project}", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")), request_body = ProjectChange,
    responses(
        (status = 200, body = Project),
        (status = 404, description = "Nobody has made such a project"),
        (status = 409, description = "A spider is another project's"),
    )
)]
pub(crate) async fn change_project(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
    extract::Json(ProjectChange { add_spiders, remove_spiders, git }): extract::Json<ProjectChange>,
) -> Result<Json<Project>, Problem> {
    check_number(&add_spiders)?;
    check_number(&remove_spiders)?;
    for spider in &remove_spiders {
        api.backend.projects.remove_spider(&project, spider).await?;
    }
    api.add_spiders(&project, &add_spiders).await?;
    if let Some(ProjectSource { clone_url, branch }) = git
        && !api.backend.projects.set_source(&project, Some(&Source { clone_url, branch })).await?
    {
        return Err(not_made(&project));
    }
    api.made(&project).await
}

/// Has workers run the commit at the end of the project's branch: they take it within seconds, and finish running tasks
/// with the one before
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/pull", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses(
        (status = 200, body = Project),
        (status = 404, description = "Nobody has made such a project"),
        (status = 409, description = "Its code does not come from Git"),
    )
)]
pub(crate) async fn pull_project(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<Project>, Problem> {
    let made = api.known_project(&project).await?;
    let none = || Problem::new(Kind::Conflict, format_args!("the code of {project} does not come from Git"));
    let tip = (api.backend.tip)(made.source.ok_or_else(none)?).await;
    projects::pull(&*api.backend.projects, &project, tip).await?;
    api.made(&project).await
}

/// Sets the secret of a project, a JSON object of at most 128 KB: the programs of its spiders are given it, on workers with
/// the key and on runners that may do the project's work. It is stored sealed, and no answer has it
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/secret", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")), request_body = serde_json::Value,
    responses(
        (status = 200, body = Project),
        (status = 404, description = "Nobody has made such a project"),
        (status = 409, description = "The API has no key that seals secrets"),
    )
)]
pub(crate) async fn set_secret(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
    request: Request,
) -> Result<Json<Project>, Problem> {
    if !media_type(request.headers()).eq_ignore_ascii_case("application/json") {
        let detail = "send `Content-Type: application/json`";
        return Err(Problem::new(Kind::UnsupportedMediaType, detail));
    }
    let secret = ProjectSecret::from_json(&body(request).await?).map_err(|why| match why {
        NoProjectSecret::TooLong => Problem::new(Kind::TooLarge, why),
        NoProjectSecret::NoObject => Problem::malformed(format_args!("body: {why}")),
    })?;
    let backend = &api.backend;
    let is_set = projects::set_secret(&*backend.projects, &backend.settings.secrets, &project, &secret).await;
    if is_set.map_err(in_conflict)? { api.made(&project).await } else { Err(not_made(&project)) }
}

/// Removes the secret of a project
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/secret", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses((status = 200, body = Project), (status = 404, description = "Nobody has made such a project"))
)]
pub(crate) async fn remove_secret(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<Project>, Problem> {
    match api.backend.projects.set_secret(&project, None).await? {
        true => api.made(&project).await,
        false => Err(not_made(&project)),
    }
}

/// The project that was forgotten
#[derive(Serialize, ToSchema)]
#[schema(as = ForgottenProject)]
pub(crate) struct Forgotten {
    project: String,
}

/// Forgets a project: its spiders, its secret, where its code comes from, and the access of runners to it. Its deployed
/// versions stay
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/forget", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses((status = 200, body = Forgotten), (status = 404, description = "Nobody has made such a project"))
)]
pub(crate) async fn forget_project(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<Forgotten>, Problem> {
    match projects::forget(&*api.backend.projects, &*api.backend.runners, &project).await? {
        true => Ok(Json(Forgotten { project: project.to_string() })),
        false => Err(not_made(&project)),
    }
}
