//! The store of deployed spiders, for all workers.

use async_trait::async_trait;

use super::Result;
use crate::names::{ProjectName, SpiderName};
use crate::spider::{SpiderFiles, SpiderText, Version};
use crate::time::UnixMs;

/// Maximum number of versions kept of a project, the latest ones.
pub const MAX_VERSIONS: usize = 100;

/// Keeps versions of projects. Every call is durable when it returns.
#[async_trait]
pub trait SpiderStore: Send + Sync {
    /// Stores these spiders as a version of the project, which becomes its latest. A version of that name is
    /// replaced; beyond [`MAX_VERSIONS`] the oldest is deleted.
    async fn add(&self, project: &ProjectName, version: &Version, files: &SpiderFiles) -> Result<()>;

    /// Returns the projects that have versions, by name.
    async fn projects(&self) -> Result<Vec<ProjectName>>;

    /// Returns the versions of a project, the latest last.
    async fn versions(&self, project: &ProjectName) -> Result<Vec<Deployed>>;

    /// Returns a number that changes whenever the latest version of the project does.
    async fn revision(&self, project: &ProjectName) -> Result<u64>;

    /// Returns the latest version of the project, with the files of all its spiders; `None` if there is none.
    async fn latest(&self, project: &ProjectName) -> Result<Option<(Version, SpiderFiles)>>;

    /// Returns the text of a spider's file in a version of the project, or in its latest one, with that version;
    /// `None` if there is none.
    async fn text(
        &self,
        project: &ProjectName,
        version: Option<&Version>,
        spider: &SpiderName,
    ) -> Result<Option<(Version, SpiderText)>>;

    /// Removes a version of the project, or all of them. Returns whether there were any. Crawls that began with
    /// them go on.
    async fn remove(&self, project: &ProjectName, version: Option<&Version>) -> Result<bool>;
}

/// A stored version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// Its name.
    pub version: Version,
    /// When it was added.
    pub added: UnixMs,
    /// Its spiders, by name.
    pub spiders: Vec<SpiderName>,
}
