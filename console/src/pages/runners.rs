//! Runners: who asks for access, and who has it.

use askama::Template;
use serde::Deserialize;
use serde_json::json;

use crate::answers::{MadeProject, MadeProjects, Runner, Runners};
use crate::ask::Call;
use crate::form::{Asked, Posted};
use crate::page::{Answer, Confirm, Here, Page, html, to};
use crate::visit::Visit;

/// The path of the page.
const PATH: &str = "/runners";

/// The project of runners that are approved for none by name.
const DEFAULT: &str = "default";

#[derive(Deserialize)]
pub(crate) struct Approval {
    runner: String,
    project: String,
    access: String,
}

#[derive(Deserialize)]
pub(crate) struct Revocation {
    runner: String,
    project: String,
}

#[derive(Deserialize)]
pub(crate) struct Named {
    #[serde(default)]
    runner: String,
}

/// The response to a change of a runner.
#[derive(Deserialize)]
struct Changed {}

#[derive(Template)]
#[template(path = "runners.html")]
struct RunnersPage {
    page: Page,
    runners: Vec<Runner>,
    projects: Vec<MadeProject>,
}

impl RunnersPage {
    /// The projects for which a runner may be approved.
    fn choices(&self) -> impl Iterator<Item = &str> {
        let made = self.projects.iter().map(|project| &*project.project);
        [DEFAULT].into_iter().chain(made.filter(|project| *project != DEFAULT))
    }
}

pub(crate) async fn list(visit: Visit) -> Answer {
    let Runners { runners } = visit.ask(Call::get(&["runners"])).await?;
    let MadeProjects { projects } = visit.ask(Call::get(&["projects"])).await?;
    html(&RunnersPage { page: Page::new("Runners", Here::Runners, &visit), runners, projects })
}

pub(crate) async fn approve(
    visit: Visit,
    Posted(Approval { runner, project, access }): Posted<Approval>,
) -> Answer {
    let body = json!({ "project": project.trim(), "access": access });
    let Changed {} = visit.ask(Call::post(&["runners", &runner, "access"]).body(&body)).await?;
    Ok(to(PATH))
}

pub(crate) async fn revoke(
    visit: Visit,
    Posted(Revocation { runner, project }): Posted<Revocation>,
) -> Answer {
    let Changed {} = visit.ask(Call::delete(&["runners", &runner, "access", &project])).await?;
    Ok(to(PATH))
}

pub(crate) async fn ask_to_forget(visit: Visit, Asked(Named { runner }): Asked<Named>) -> Answer {
    html(&Confirm {
        page: Page::new("Forget a runner", Here::Runners, &visit),
        question: format!("Forget {runner}?").into(),
        notes: vec!["It loses its access, and its name is free for another key.".into()],
        action: format!("{PATH}/forget"),
        fields: vec![("runner", runner)],
        verb: "Forget the runner",
        back: PATH.to_owned(),
    })
}

pub(crate) async fn forget(visit: Visit, Posted(Named { runner }): Posted<Named>) -> Answer {
    let Changed {} = visit.ask(Call::delete(&["runners", &runner])).await?;
    Ok(to(PATH))
}
