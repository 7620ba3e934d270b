//! A project: its code and its work, and its deployed versions.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use serde::Deserialize;
use trawl_common::text::counted;

use super::Nothing;
use crate::Console;
use crate::address::address;
use crate::answers::{MadeProject, Removed, Version, Versions};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Posted, Segments, written};
use crate::page::{Answer, Confirm, Here, Page, html, to};
use crate::visit::Visit;

/// The version to remove; `None` for all.
#[derive(Deserialize)]
pub(crate) struct Named {
    version: Option<String>,
}

#[derive(Template)]
#[template(path = "project.html")]
struct ProjectPage {
    page: Page,
    project: String,
    /// The project, if people have made it.
    made: Option<MadeProject>,
    /// The versions, the latest first.
    versions: Vec<Version>,
}

/// The response to a command.
#[derive(Deserialize)]
struct Commanded {}

impl Version {
    /// The address of the page of one of its spiders in this version.
    fn spider(&self, project: &str, spider: &str) -> String {
        address(&format!("/spiders/{project}/{spider}"), [("version", &self.version)])
    }

    /// The address of the page that asks before it is removed.
    fn removal(&self, project: &str) -> String {
        address(&format!("/projects/{project}/remove"), [("version", &self.version)])
    }
}

pub(crate) async fn show(visit: Visit, Segments(project): Segments<String>) -> Answer {
    let made = known(visit.ask(Call::get(&["projects", &project])).await)?;
    let versions = visit.ask(Call::get(&["projects", &project, "versions"])).await;
    let versions = if made.is_some() { known(versions)? } else { Some(versions?) };
    let mut versions = versions.map_or_else(Vec::new, |Versions { versions }| versions);
    versions.reverse();
    html(&ProjectPage {
        page: Page::new(format!("Project {project}"), Here::Spiders, &visit),
        project,
        made,
        versions,
    })
}

/// Returns what the API knows; `None` if there is no such thing.
fn known<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Err(Failure { status: 404, .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Returns the handler of a form that commands the work of a project, as the API's `verb` does.
pub(crate) fn command(verb: &'static str) -> MethodRouter<Arc<Console>> {
    post(async move |visit: Visit, Segments(project): Segments<String>, Posted(Nothing {})| -> Answer {
        let Commanded {} = visit.ask(Call::post(&["projects", &project, verb])).await?;
        Ok(to(&format!("/projects/{project}")))
    })
}

pub(crate) async fn ask_to_remove(
    visit: Visit,
    Segments(project): Segments<String>,
    Asked(Named { version }): Asked<Named>,
) -> Answer {
    let Versions { versions } = visit.ask(Call::get(&["projects", &project, "versions"])).await?;
    let is_there = |name: &str| versions.iter().any(|known| known.version == name);
    let (question, note) = match written(&version) {
        Some(version) if !is_there(version) => {
            let detail = format!("project {project} has no version {version}: it was removed, or never was");
            return Err(Failure::new(StatusCode::NOT_FOUND, "There is no such version", detail));
        }
        Some(version) if versions.last().is_some_and(|latest| latest.version == version) => {
            let next = match versions.iter().rev().nth(1) {
                Some(before) => format!("The latest is version {} then.", before.version),
                None => "The project has no other version.".to_owned(),
            };
            (format!("Remove version {version} of project {project}?"), next)
        }
        Some(version) => {
            (format!("Remove version {version} of project {project}?"), "It is not the latest.".to_owned())
        }
        None => {
            let number = counted(versions.len() as u64, "version");
            (format!("Remove project {project}?"), format!("It has {number}."))
        }
    };
    html(&Confirm {
        page: Page::new("Remove spiders", Here::Spiders, &visit),
        question: question.into(),
        notes: vec![
            note.into(),
            "Crawls that began with it go on. What was removed can only be deployed again.".into(),
        ],
        action: format!("/projects/{project}/remove"),
        fields: version.into_iter().map(|version| ("version", version)).collect(),
        verb: "Remove",
        back: format!("/projects/{project}"),
    })
}

pub(crate) async fn remove(
    visit: Visit,
    Segments(project): Segments<String>,
    Posted(Named { version }): Posted<Named>,
) -> Answer {
    let call = match written(&version) {
        Some(version) => Call::delete(&["projects", &project, "versions", version]),
        None => Call::delete(&["projects", &project]),
    };
    let Removed { version } = visit.ask(call).await?;
    let call = Call::get(&["projects", &project, "versions"]);
    let is_left = version.is_some() && visit.ask::<Versions>(call).await.is_ok();
    Ok(to(&if is_left { format!("/projects/{project}") } else { "/spiders".to_owned() }))
}
