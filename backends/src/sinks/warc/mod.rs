//! Responses as they came, in WARC files (ISO 28500, version 1.1) with their index.

mod cdxj;
mod record;
mod surt;
mod volume;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use trawl_common::ports::{Page, Result, Sink};
use trawl_common::settings::Folder;
use trawl_common::spider::Spider;

use self::record::Capture;
use self::volume::Volume;
use super::{in_background, trouble};

/// A folder of WARC files, `<spider>-<time>-<random>.warc.gz`, each beside its index `.cdxj`. While they grow their
/// names begin with `_`.
pub(super) struct Archive {
    name: String,
    shelf: Arc<Shelf>,
}

struct Shelf {
    folder: PathBuf,
    prefix: String,
    rotate: u64,
    volume: Mutex<Option<Volume>>,
}

impl Archive {
    /// The archive in this folder. What dead processes left there is finished.
    pub(super) fn open(folder: &Folder, spider: &Spider) -> Result<Self> {
        volume::finish_leftovers(&folder.path).map_err(|error| trouble(&folder.path, &error))?;
        let shelf = Shelf {
            folder: folder.path.clone(),
            prefix: spider.name.to_string(),
            rotate: folder.rotate.as_u64(),
            volume: Mutex::default(),
        };
        Ok(Self { name: format!("warc {}", folder.path.display()), shelf: Arc::new(shelf) })
    }
}

#[async_trait]
impl Sink for Archive {
    fn name(&self) -> &str {
        &self.name
    }

    fn keeps_responses(&self) -> bool {
        true
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        let captures: Vec<Capture> = pages.iter().filter_map(Capture::of).collect();
        if captures.is_empty() {
            return Ok(());
        }
        let shelf = Arc::clone(&self.shelf);
        in_background(&self.shelf.folder, move || shelf.append(&captures)).await
    }

    async fn close(&self) -> Result<()> {
        let shelf = Arc::clone(&self.shelf);
        in_background(&self.shelf.folder, move || shelf.finish(0)).await
    }
}

impl Shelf {
    fn append(&self, captures: &[Capture]) -> io::Result<()> {
        self.finish(self.rotate)?;
        let mut volume = self.volume.lock().unwrap_or_else(PoisonError::into_inner);
        let volume = match &mut *volume {
            Some(volume) => volume,
            None => volume.insert(Volume::begin(&self.folder, &self.prefix)?),
        };
        volume.append(captures)
    }

    /// Finishes the file if it has so many bytes.
    fn finish(&self, bytes: u64) -> io::Result<()> {
        let mut volume = self.volume.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full) = &*volume
            && full.len()? >= bytes
        {
            full.finish()?;
            *volume = None;
        }
        Ok(())
    }
}
