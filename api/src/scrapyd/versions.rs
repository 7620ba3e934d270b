//! Projects, their versions, and the spiders in them.

use std::sync::Arc;

use axum::extract::State;
use serde_json::json;
use trawl_common::names::ProjectName;
use trawl_common::ports::Deployed;
use trawl_common::spider::Version;

use super::form::Parameters;
use super::{Answer, Done, Refusal};
use crate::Api;
use crate::identity::Identity;
use crate::spiders::{Unrunnable, files_of};

/// `addversion.json`: the file `egg` is a spider file, or a tar of them.
pub(super) async fn add_version(
    State(api): State<Arc<Api>>,
    identity: Identity,
    mut sent: Parameters,
) -> Answer {
    let (project, version): (ProjectName, Version) = (sent.required("project")?, sent.required("version")?);
    let (name, bytes) = sent.file()?;
    let settings = Arc::clone(&api.backend.settings);
    let read = move || files_of(name.as_deref(), &bytes, &settings);
    let files = api.examine(&identity, read).await?.map_err(Refusal::new)?;
    api.backend.spider_store.add(&project, &version, &files).await?;
    Done::with(json!({ "project": project, "version": version, "spiders": files.iter().count() }))
}

/// `listprojects.json`
pub(super) async fn list_projects(State(api): State<Arc<Api>>) -> Answer {
    let mut projects = api.backend.spider_store.projects().await?;
    // There may be files of its spiders on this machine.
    if !projects.contains(&ProjectName::default()) && !api.spiders_here().is_empty() {
        projects.insert(0, ProjectName::default());
    }
    Done::with(json!({ "projects": projects }))
}

/// `listversions.json`: the versions, the latest last.
pub(super) async fn list_versions(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let versions = api.backend.spider_store.versions(&sent.required("project")?).await?;
    let names: Vec<&Version> = versions.iter().map(|deployed| &deployed.version).collect();
    Done::with(json!({ "versions": names }))
}

/// `listspiders.json`: the spiders of the latest version, or of `_version`.
pub(super) async fn list_spiders(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let (project, version): (ProjectName, Option<Version>) =
        (sent.required("project")?, sent.optional("_version")?);
    let mut versions = api.backend.spider_store.versions(&project).await?;
    let is_without = versions.is_empty();
    let found = match &version {
        None => versions.pop(),
        Some(version) => versions.into_iter().find(|deployed| deployed.version == *version),
    };
    let spiders = match (found, version) {
        (Some(Deployed { spiders, .. }), _) => spiders,
        (None, None) if project == ProjectName::default() => api.spiders_here(),
        (None, Some(version)) if !is_without => {
            return Err(Refusal::new(Unrunnable::Version { project, version }));
        }
        (None, _) => return Err(Refusal::new(Unrunnable::Project(project))),
    };
    Done::with(json!({ "spiders": spiders }))
}

/// `delversion.json`
pub(super) async fn delete_version(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let (project, version): (ProjectName, Version) = (sent.required("project")?, sent.required("version")?);
    match api.backend.spider_store.remove(&project, Some(&version)).await? {
        true => Done::with(json!({})),
        false => Err(Refusal::new(Unrunnable::Version { project, version })),
    }
}

/// `delproject.json`
pub(super) async fn delete_project(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let project: ProjectName = sent.required("project")?;
    match api.backend.spider_store.remove(&project, None).await? {
        true => Done::with(json!({})),
        false => Err(Refusal::new(Unrunnable::Project(project))),
    }
}
