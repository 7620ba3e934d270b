//! The projects of spiders. They are answered at once: a store's thread would let the test's time run on.

use async_trait::async_trait;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Grants, Result};
use trawl_common::project::{Grant, VersionReport};

/// No spider is in a project.
pub(super) struct NoProjects;

#[async_trait]
impl Grants for NoProjects {
    async fn grants(&self, spiders: &[SpiderName]) -> Result<Vec<Option<Grant>>> {
        Ok(vec![None; spiders.len()])
    }

    async fn note_version(&self, _: &VersionReport) -> Result<()> {
        Ok(())
    }
}
