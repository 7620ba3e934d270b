//! Projects, and what they grant to the programs of their spiders.

use async_trait::async_trait;

use super::{Error, ErrorKind, Result};
use crate::names::{ProjectName, SpiderName};
use crate::project::{Grant, Project, SealedSecret, Source, Wanted};

/// Maximum number of projects that people make.
pub const MAX_PROJECTS: usize = 1000;

/// Maximum number of spiders of all projects.
pub const MAX_PROJECT_SPIDERS: usize = 10_000;

/// Keeps the projects that people make. Every call is durable when it returns.
#[async_trait]
pub trait Projects: Send + Sync {
    /// Makes a project without spiders and without a secret. Returns whether there was none of that name.
    ///
    /// Fails with `Refused` if there are [`MAX_PROJECTS`].
    async fn create(&self, name: &ProjectName) -> Result<bool>;

    /// Returns a project; `None` if nobody has made it.
    async fn project(&self, name: &ProjectName) -> Result<Option<Project>>;

    /// Returns all projects, by name.
    async fn made(&self) -> Result<Vec<Project>>;

    /// Adds a spider to a project. Returns whether there is such a project.
    ///
    /// Fails with `Refused` if the spider is another project's, or if there are [`MAX_PROJECT_SPIDERS`].
    async fn add_spider(&self, name: &ProjectName, spider: &SpiderName) -> Result<bool>;

    /// Takes a spider out of a project. Returns whether it was there.
    async fn remove_spider(&self, name: &ProjectName, spider: &SpiderName) -> Result<bool>;

    /// Returns the secret of a project, if it has one.
    async fn secret(&self, name: &ProjectName) -> Result<Option<SealedSecret>>;

    /// Replaces the secret of a project, or removes it. Returns whether there is such a project.
    async fn set_secret(&self, name: &ProjectName, secret: Option<&SealedSecret>) -> Result<bool>;

    /// Sets where the code of a project comes from; until [`Projects::want`], there is no version to run. Returns whether
    /// there is such a project.
    async fn set_source(&self, name: &ProjectName, source: Option<&Source>) -> Result<bool>;

    /// Returns the version that workers are to run, if there is one.
    async fn wanted(&self, name: &ProjectName) -> Result<Option<Wanted>>;

    /// Sets the version that workers are to run. Returns whether there is such a project.
    async fn want(&self, name: &ProjectName, wanted: &Wanted) -> Result<bool>;

    /// Forgets a project, its secret, and which spiders it has. Returns whether there was one.
    async fn forget(&self, name: &ProjectName) -> Result<bool>;

    /// Returns, in order, the project that each of these spiders belongs to.
    async fn owners(&self, spiders: &[SpiderName]) -> Result<Vec<Option<ProjectName>>>;
}

/// Tells a worker what the projects of spiders grant to their programs.
#[async_trait]
pub trait Grants: Send + Sync {
    /// Returns, in order, the grant for each of these spiders; `None` for one that is in no project.
    async fn grants(&self, spiders: &[SpiderName]) -> Result<Vec<Option<Grant>>>;
}

/// Returns the error of a project for which there is no room.
pub fn too_many_projects() -> Error {
    let text = format!("there are {MAX_PROJECTS} projects: forget some first (`trawl project forget`)");
    Error::new(ErrorKind::Refused, text)
}

/// Returns the error of a spider for which there is no room.
pub fn too_many_spiders() -> Error {
    Error::new(
        ErrorKind::Refused,
        format!("all projects together have at most {MAX_PROJECT_SPIDERS} spiders"),
    )
}

/// Returns the error of a spider that another project has.
pub fn owned_by_another(spider: &SpiderName, owner: &ProjectName) -> Error {
    let way_out = format!("take it out there first (`trawl project set {owner} --no-spider {spider}`)");
    Error::new(ErrorKind::Refused, format!("the spider {spider} is one of the project {owner}: {way_out}"))
}
