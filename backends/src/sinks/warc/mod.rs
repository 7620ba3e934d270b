//! Responses as received, in WARC files (ISO 28500, version 1.1) with their index.

mod cdxj;
mod reader;
mod record;
mod surt;
mod volume;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tracing::warn;
use trawl_common::ports::{Page, Result, Sink};
use trawl_common::settings::FileSink;
use trawl_common::spider::Spider;

pub use self::reader::{Archived, Noted, Unreadable, WarcReader, warc_files};
use self::record::Capture;
use self::volume::Volume;
use super::directory::Directory;
use super::disk::{self, in_background};
use super::orphans::{Orphans, TOUCH_INTERVAL};

/// A folder of WARC files, `<spider>-<time>-<random>.warc.gz`, each beside its index `.cdxj`. Names of unfinished files
/// begin with `_`.
pub(super) struct Archive {
    name: String,
    shelf: Arc<Shelf>,
}

struct Shelf {
    /// The path in the settings.
    shown: PathBuf,
    folder: Directory,
    prefix: String,
    rotate: u64,
    sync: bool,
    volume: Mutex<Option<Volume>>,
    orphans: Mutex<Orphans>,
}

impl Archive {
    /// Opens the archive in this folder. Files left by dead processes are finished. Needs a runtime, which does that.
    pub(super) fn open(settings: &FileSink, directory: Directory, spider: &Spider) -> Result<Self> {
        let shelf = Shelf {
            shown: settings.path.clone(),
            folder: directory,
            prefix: spider.name.to_string(),
            rotate: settings.rotate.unwrap_or(FileSink::FOLDER_ROTATE).as_u64(),
            sync: settings.sync,
            volume: Mutex::default(),
            orphans: Mutex::default(),
        };
        shelf.tend().map_err(|error| disk::failed(&settings.path, &error))?;
        let shelf = Arc::new(shelf);
        let watched = Arc::downgrade(&shelf);
        tokio::spawn(async move {
            tokio::time::sleep(TOUCH_INTERVAL).await;
            while let Some(shelf) = watched.upgrade() {
                let folder = shelf.shown.clone();
                if let Err(error) = in_background(&folder, move || shelf.tend()).await {
                    warn!(%error, "what other processes may have left is not looked at");
                }
                tokio::time::sleep(TOUCH_INTERVAL).await;
            }
        });
        Ok(Self { name: format!("warc {}", settings.path.display()), shelf })
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
        let captures: Vec<Capture> = pages.iter().filter_map(Capture::new).collect();
        if captures.is_empty() {
            return Ok(());
        }
        let shelf = Arc::clone(&self.shelf);
        in_background(&self.shelf.shown, move || shelf.append(&captures)).await
    }

    async fn close(&self) -> Result<()> {
        let shelf = Arc::clone(&self.shelf);
        in_background(&self.shelf.shown, move || shelf.finish(0)).await
    }
}

impl Shelf {
    /// Appends these captures; a file ends with the capture that reaches its maximum size.
    fn append(&self, mut captures: &[Capture]) -> io::Result<()> {
        while !captures.is_empty() {
            let fitting = self.fitting(captures)?;
            let (now, later) = captures.split_at(fitting);
            self.append_to_one(now)?;
            captures = later;
        }
        Ok(())
    }

    /// Returns how many of these captures fit into the file by the size of their bodies, at least one.
    fn fitting(&self, captures: &[Capture]) -> io::Result<usize> {
        self.finish(self.rotate)?;
        let volume = self.volume.lock();
        let mut room = self.rotate.saturating_sub(volume.as_ref().map_or(Ok(0), Volume::len)?);
        let fits = |capture: &&Capture| {
            let size = capture.size();
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        };
        Ok(captures.iter().take_while(fits).count().max(1))
    }

    fn append_to_one(&self, captures: &[Capture]) -> io::Result<()> {
        let mut place = self.volume.lock();
        let mut volume = match place.take() {
            Some(volume) => volume,
            None => Volume::begin(self.folder.path(), &self.prefix, self.sync)?,
        };
        let appended = volume.append(captures);
        // If it was taken over, it is unknown whether it had these captures: they go to the next one.
        volume.check_own()?;
        *place = Some(volume);
        appended
    }

    /// Shows that the file has a process, and finishes orphaned files.
    fn tend(&self) -> io::Result<()> {
        if let Some(volume) = &*self.volume.lock() {
            volume.beat()?;
        }
        let mut orphans = self.orphans.lock();
        volume::finish_leftovers(self.folder.path(), &mut orphans)
    }

    /// Finishes the file if it has at least `bytes` bytes.
    fn finish(&self, bytes: u64) -> io::Result<()> {
        let mut volume = self.volume.lock();
        let Some(full) = &*volume else { return Ok(()) };
        if full.len()? >= bytes {
            // The process that took it over finishes it.
            if full.check_own().is_ok() {
                full.finish()?;
            }
            *volume = None;
        }
        Ok(())
    }
}
