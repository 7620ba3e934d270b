//! Projects, as drones see them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use trawl_common::names::ProjectName;
use trawl_common::ports::Runner;
use trawl_common::project::{self, Source, Wanted};

use super::answer::{Answer, done, nothing};
use super::{TaskTracker, numbers};
use crate::extract::Segment;
use crate::problem::{Kind, Problem};

/// A project: of one to which the drone has no access, the number alone.
#[derive(Default, Serialize)]
pub(super) struct Project {
    id: u64,
    priority: i64,
    name: String,
    clone_url: String,
    /// The path of the repository.
    git_repo: String,
    /// The commit to run; that at the end of the default branch if it is empty.
    version: String,
    motd: String,
    public: bool,
    hidden: bool,
    chain: u64,
    paused: bool,
    assign_rate: u32,
    submit_rate: u32,
}

impl Project {
    pub(super) fn new(name: &ProjectName, source: Option<&Source>, wanted: Option<&Wanted>) -> Self {
        let clone_url = source.map_or("", |source| source.clone_url.as_str());
        let path = clone_url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        let path = path.map_or("", |(_, path)| path.trim_end_matches(".git"));
        Self {
            id: numbers::of_project(name),
            name: name.to_string(),
            clone_url: clone_url.to_owned(),
            git_repo: path.to_owned(),
            version: wanted.map(|wanted| wanted.commit.to_string()).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns a project as this drone may see it.
    fn seen_by(runner: &Runner, project: &project::Project) -> Self {
        let project::Project { name, source, wanted, .. } = project;
        match runner.access.contains_key(name) {
            true => Self::new(name, source.as_ref(), wanted.as_ref()),
            false => Self { id: numbers::of_project(name), ..Self::default() },
        }
    }
}

#[derive(Serialize)]
struct ProjectsContent {
    projects: Vec<Project>,
}

#[derive(Serialize)]
struct ProjectContent {
    project: Project,
}

#[derive(Serialize)]
struct SecretContent {
    /// The JSON of the secret.
    secret: String,
}

/// Lists the projects that people have made.
pub(super) async fn list(State(tt): State<Arc<TaskTracker>>, head: Parts) -> Answer {
    let runner = tt.caller(&head).await?;
    let made = tt.api.backend.projects.made().await?;
    done(ProjectsContent {
        projects: made.iter().map(|project| Project::seen_by(&runner, project)).collect(),
    })
}

/// Shows a project to which the drone has access.
pub(super) async fn show(
    State(tt): State<Arc<TaskTracker>>,
    Segment(number): Segment<u64>,
    head: Parts,
) -> Answer {
    let runner = tt.caller(&head).await?;
    let (name, code) = tt.code(&runner, &numbers::Project::Number(number)).await?;
    done(ProjectContent { project: Project::new(&name, code.source.as_ref(), code.wanted.as_ref()) })
}

/// Gives the secret of a project to a drone that does its work.
pub(super) async fn secret(
    State(tt): State<Arc<TaskTracker>>,
    Segment(number): Segment<u64>,
    head: Parts,
) -> Answer {
    let runner = tt.caller(&head).await?;
    let (name, code) = tt.code(&runner, &numbers::Project::Number(number)).await?;
    if !runner.is_assigned(&name) {
        return Err(not_allowed(&runner, &name).into());
    }
    let unknown = |why: &dyn std::fmt::Display| {
        Problem::new(Kind::Refused, format_args!("the secret of {name} cannot be opened: {why}"))
    };
    let secret = match code.secret.map_err(|error| unknown(&error))? {
        None => "{}".to_owned(),
        Some(sealed) => {
            let key = tt.api.backend.settings.secrets.key().map_err(|error| unknown(&error))?;
            let key = key.ok_or_else(|| unknown(&"secrets.key_file of the API names no key"))?;
            let secret = sealed.open(&name, &key).map_err(|error| unknown(&error))?;
            secret.with_own("{}").map_err(|error| unknown(&error))?
        }
    };
    done(SecretContent { secret })
}

#[derive(Deserialize)]
struct Access {
    #[expect(dead_code, reason = "people decide for which projects a drone works")]
    project: numbers::Project,
}

/// Asks for access, which people give.
pub(super) async fn request_access(State(tt): State<Arc<TaskTracker>>, request: Request) -> Answer {
    let (runner, Access { .. }) = tt.call(request).await?;
    tt.api.backend.runners.ask(&runner.name, &runner.key).await?;
    nothing()
}

impl TaskTracker {
    /// Returns the name and the code of a project to which the drone has access.
    async fn code(
        &self,
        runner: &Runner,
        project: &numbers::Project,
    ) -> Result<(ProjectName, project::ProjectCode), Problem> {
        let name = project.of(runner).ok_or_else(not_found)?;
        let code = self.api.backend.projects.code(std::slice::from_ref(name)).await?.pop().flatten();
        Ok((name.clone(), code.ok_or_else(not_found)?))
    }
}

/// Returns the problem of a project that is not there, or to which the drone has no access: it is not told which.
pub(super) fn not_found() -> Problem {
    Problem::not_found("there is no such project, or people have not approved you for it")
}

pub(super) fn not_allowed(runner: &Runner, project: &ProjectName) -> Problem {
    let name = &runner.name;
    let detail = format!("the worker may not: trawl runner approve {name} --project {project}");
    Problem::new(Kind::Forbidden, detail)
}
