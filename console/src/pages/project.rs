//! A project: its versions, and their removal.

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;
use trawl_common::text::counted;

use crate::address::address;
use crate::answers::{Removed, Version, Versions};
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
    /// The versions, the latest first.
    versions: Vec<Version>,
}

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
    let Versions { mut versions } = visit.ask(Call::get(&["projects", &project, "versions"])).await?;
    versions.reverse();
    html(&ProjectPage {
        page: Page::new(format!("Project {project}"), Here::Spiders, &visit),
        project,
        versions,
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
