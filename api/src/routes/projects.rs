//! Projects: adding and removing their versions.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::Deployed;
use trawl_common::spider::{self, folder::IN_OWN_FOLDER};
use trawl_common::time::UnixMs;
use utoipa::{IntoParams, ToSchema};

use crate::Api;
use crate::extract::{Params, Segment, body};
use crate::identity::Identity;
use crate::problem::Problem;
use crate::spiders::{Unfit, Unrunnable, files_of};
use crate::view::Time;

/// The versions of a project, the latest last
#[derive(Serialize, ToSchema)]
pub(crate) struct Versions {
    versions: Vec<Version>,
}

/// A version of a project
#[derive(Serialize, ToSchema)]
struct Version {
    version: String,
    added: Time,
    /// The spiders in it
    spiders: Vec<String>,
}

impl From<Deployed> for Version {
    fn from(Deployed { version, added, spiders }: Deployed) -> Self {
        let spiders = spiders.iter().map(SpiderName::to_string).collect();
        Self { version: version.to_string(), added: added.into(), spiders }
    }
}

/// The stored versions of a project: the last hundred
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/versions", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses((status = 200, body = Versions), (status = 404, description = "There is no such project"))
)]
pub(crate) async fn list_versions(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<Versions>, Problem> {
    let versions = api.backend.spider_store.versions(&project).await?;
    if versions.is_empty() {
        return Err(Problem::not_found(Unrunnable::Project(project)));
    }
    Ok(Json(Versions { versions: versions.into_iter().map(Version::from).collect() }))
}

/// The names for an upload.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Naming {
    /// The version, which is replaced if it exists; by default one named by the time
    #[param(value_type = Option<String>)]
    version: Option<spider::Version>,
    /// The spider whose file it is; the files of a tar have names
    #[param(value_type = Option<String>)]
    spider: Option<SpiderName>,
}

/// A version that was added
#[derive(Serialize, ToSchema)]
pub(crate) struct Added {
    project: String,
    version: String,
    spiders: Vec<String>,
}

/// Deploys spiders as the latest version of a project, replacing all its spiders: a spider's file, or a tar
/// of files NAME.toml, optionally compressed with gzip. Nothing is deployed if there is a mistake in any of
/// them
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/versions", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project"), Naming),
    request_body(content(
        (String = "application/toml"), (Vec<u8> = "application/x-tar"), (Vec<u8> = "application/gzip")
    )),
    responses((status = 201, body = Added), (status = 404, description = "No project can have that name"))
)]
pub(crate) async fn add_version(
    State(api): State<Arc<Api>>,
    identity: Identity,
    Segment(project): Segment<ProjectName>,
    Params(Naming { version, spider }): Params<Naming>,
    request: Request,
) -> Result<(StatusCode, Json<Added>), Problem> {
    let (upload, settings) = (body(request).await?, Arc::clone(&api.backend.settings));
    let file = spider.map(|spider| format!("{spider}/{IN_OWN_FOLDER}"));
    let read = move || files_of(file.as_deref(), &upload, &settings);
    let files = api.examine(&identity, read).await?.map_err(|unfit| match unfit {
        Unfit::Nameless => {
            Problem::malformed("spider: say whose file it is; a tar of files NAME.toml needs no name")
        }
        unfit => Problem::malformed(unfit),
    })?;
    let version = version.unwrap_or_else(|| spider::Version::of_time(UnixMs::now()));
    api.backend.spider_store.add(&project, &version, &files).await?;
    let spiders = files.iter().map(|(name, _)| name.to_string()).collect();
    let added = Added { project: project.to_string(), version: version.to_string(), spiders };
    Ok((StatusCode::CREATED, Json(added)))
}

/// The removed version
#[derive(Serialize, ToSchema)]
pub(crate) struct Removed {
    project: String,
    /// Null for all versions
    version: Option<String>,
}

/// Removes a version of a project; crawls that began with it go on
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/versions/{version}", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project"), ("version" = String, Path, description = "The version")),
    responses((status = 200, body = Removed), (status = 404, description = "There is no such version"))
)]
pub(crate) async fn remove_version(
    State(api): State<Arc<Api>>,
    Segment((project, version)): Segment<(ProjectName, spider::Version)>,
) -> Result<Json<Removed>, Problem> {
    match api.backend.spider_store.remove(&project, Some(&version)).await? {
        true => Ok(Json(Removed { project: project.to_string(), version: Some(version.to_string()) })),
        false => Err(Problem::not_found(Unrunnable::Version { project, version })),
    }
}

/// Removes all versions of a project; crawls that began with them go on
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}", tag = "spiders", security(("token" = [])),
    params(("project" = String, Path, description = "The project")),
    responses((status = 200, body = Removed), (status = 404, description = "There is no such project"))
)]
pub(crate) async fn remove_project(
    State(api): State<Arc<Api>>,
    Segment(project): Segment<ProjectName>,
) -> Result<Json<Removed>, Problem> {
    match api.backend.spider_store.remove(&project, None).await? {
        true => Ok(Json(Removed { project: project.to_string(), version: None })),
        false => Err(Problem::not_found(Unrunnable::Project(project))),
    }
}
