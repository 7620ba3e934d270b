//! A folder of downloaded files.

use std::path::PathBuf;

use async_trait::async_trait;
use trawl_common::ports::{FileStore, PartialFile, Result};
use trawl_common::web::url::Fingerprint;

use super::destination::Destination;
use super::partial::Partial;
use super::staging::Staging;
use crate::sinks::directory::Directory;
use crate::sinks::disk;

/// The folder, below that of the files, of downloads that are not complete.
const STAGING: &str = ".staging";

/// A folder of downloaded files.
pub(in crate::sinks) struct FileFolder {
    name: String,
    destination: Destination,
    staging: Staging,
}

impl FileFolder {
    /// Opens the folder `to`, which is created if it does not exist; with `below`, it must be below that, without a
    /// symbolic link on the way. If `is_synced`, a file is on the disk when it is kept.
    pub(in crate::sinks) fn open(to: PathBuf, below: Option<PathBuf>, is_synced: bool) -> Result<Self> {
        let staging = Directory::new(&to.join(STAGING), below.as_deref());
        let staging = Staging::new(staging.map_err(|error| disk::failed(&to, &error))?);
        let name = format!("files {}", to.display());
        Ok(Self { name, destination: Destination { to, below, is_synced }, staging })
    }
}

#[async_trait]
impl FileStore for FileFolder {
    fn name(&self) -> &str {
        &self.name
    }

    async fn open(&self, key: Fingerprint) -> Result<Box<dyn PartialFile>> {
        Ok(Box::new(Partial::open(self.destination.clone(), self.staging.clone(), key).await?))
    }
}
