//! The spiders that were deployed: who keeps them for all workers.

use async_trait::async_trait;

use super::Result;
use crate::names::{ProjectName, SpiderName};
use crate::spider::{SpiderFiles, SpiderText, Version};
use crate::time::UnixMs;

/// So many versions of a project are kept: the latest.
pub const MAX_VERSIONS: usize = 100;

/// Keeps versions of projects. Every call is durable when it returns.
#[async_trait]
pub trait SpiderStore: Send + Sync {
    /// Keeps these spiders as a version of the project, which is its latest from now on. A version of that name is replaced; of more
    /// than [`MAX_VERSIONS`] the oldest goes.
    async fn add(&self, project: &ProjectName, version: &Version, files: &SpiderFiles) -> Result<()>;

    /// The projects that have versions, by name.
    async fn projects(&self) -> Result<Vec<ProjectName>>;

    /// The versions of a project, the latest last.
    async fn versions(&self, project: &ProjectName) -> Result<Vec<Deployed>>;

    /// A number that is another after each change of what is the latest version of the project.
    async fn revision(&self, project: &ProjectName) -> Result<u64>;

    /// The latest version of the project, with the files of all its spiders; `None` if there is none.
    async fn latest(&self, project: &ProjectName) -> Result<Option<(Version, SpiderFiles)>>;

    /// What the file of a spider says in a version of the project, or in its latest one; with that version. `None` if there is none.
    async fn text(
        &self,
        project: &ProjectName,
        version: Option<&Version>,
        spider: &SpiderName,
    ) -> Result<Option<(Version, SpiderText)>>;

    /// Removes a version of the project, or all of them. Returns whether there were any. Crawls that began with them go on.
    async fn remove(&self, project: &ProjectName, version: Option<&Version>) -> Result<bool>;
}

/// A version that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// Its name.
    pub version: Version,
    /// When it was added.
    pub added: UnixMs,
    /// Its spiders, by name.
    pub spiders: Vec<SpiderName>,
}
