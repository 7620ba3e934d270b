//! Projects, and what they grant to the programs of their spiders.

use async_trait::async_trait;

use super::{Error, ErrorKind, Result};
use crate::names::{ProjectName, SpiderName};
use crate::project::{Grant, Project, ProjectCode, SealedSecret, Source, VersionReport, Wanted};

/// Maximum number of projects that people make.
pub const MAX_PROJECTS: usize = 1000;

/// Maximum number of spiders of all projects.
pub const MAX_PROJECT_SPIDERS: usize = 10_000;

/// Maximum number of machines whose reports on a version are kept.
pub const MAX_REPORTS: usize = 256;

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

    /// Returns, in order, the code and the secret of each of these projects; `None` for one that nobody has made. The call
    /// is cheap, unlike [`Projects::project`], which looks through the spiders of all projects.
    async fn code(&self, names: &[ProjectName]) -> Result<Vec<Option<ProjectCode>>>;

    /// Replaces the secret of a project, or removes it. Returns whether there is such a project.
    async fn set_secret(&self, name: &ProjectName, secret: Option<&SealedSecret>) -> Result<bool>;

    /// Sets where the code of a project comes from; until [`Projects::want`], there is no version to run. Returns whether
    /// there is such a project.
    async fn set_source(&self, name: &ProjectName, source: Option<&Source>) -> Result<bool>;

    /// Sets the version that workers are to run, and forgets the reports on another one. Returns whether there is such a
    /// project.
    async fn want(&self, name: &ProjectName, wanted: &Wanted) -> Result<bool>;

    /// Notes what a machine says of a version, in place of what it said before. A report on a version that is not wanted
    /// is left out, and so is that of one machine too many ([`MAX_REPORTS`]).
    async fn note_version(&self, report: &VersionReport) -> Result<()>;

    /// Returns what machines say of the version that is wanted, by machine.
    async fn reports(&self, name: &ProjectName) -> Result<Vec<VersionReport>>;

    /// Forgets a project, its secret, what machines say of its version, and which spiders it has. Returns whether there was one.
    async fn forget(&self, name: &ProjectName) -> Result<bool>;

    /// Returns, in order, the project that each of these spiders belongs to.
    async fn owners(&self, spiders: &[SpiderName]) -> Result<Vec<Option<ProjectName>>>;
}

/// Tells a worker what the projects of spiders grant to their programs, and is told of their versions.
#[async_trait]
pub trait Grants: Send + Sync {
    /// Returns, in order, the grant for each of these spiders; `None` for one that is in no project.
    async fn grants(&self, spiders: &[SpiderName]) -> Result<Vec<Option<Grant>>>;

    /// Notes what this machine has made of a version ([`Projects::note_version`]).
    async fn note_version(&self, report: &VersionReport) -> Result<()>;
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
