//! Items in Parquet files.
//!
//! A Parquet file cannot be read before its end is written. So items go to a spool first, a file of JSON Lines, which
//! is converted to a Parquet file of the same name when it is large or old enough, or when the sink is closed. Spools
//! that dead processes left are converted as well.

mod column;
mod turn;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tracing::warn;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Page, Result, Sink};
use trawl_common::settings::FileSink;
use trawl_common::spider::Spider;

use super::columns::Columns;
use super::directory::Directory;
use super::disk::{self, in_background};
use super::growing::Growing;
use super::items::{json, plain_json};
use super::orphans::{self, Orphans, TOUCH_INTERVAL};
use super::parts;

/// Maximum age of a spool.
const MAX_SPOOL_AGE: Duration = Duration::from_secs(600);

/// A folder of Parquet files, `<spider>-<time>-<random>.parquet`. The spools' names begin with `_`.
pub(super) struct Parquet {
    name: String,
    shelf: Arc<Shelf>,
}

struct Shelf {
    /// The path in the settings.
    shown: PathBuf,
    folder: Directory,
    spider: SpiderName,
    columns: Columns,
    rotate: u64,
    sync: bool,
    spool: Mutex<Option<Spool>>,
    orphans: Mutex<Orphans>,
    /// Held while spools are converted: one at a time, while items go to the next one.
    turning: Arc<tokio::sync::Mutex<()>>,
}

struct Spool {
    file: Growing,
    since: Instant,
}

impl Parquet {
    /// Opens the folder for the items of this spider. Needs a runtime, which converts spools.
    pub(super) fn open(settings: &FileSink, directory: Directory, spider: &Spider) -> Result<Self> {
        let shelf = Arc::new(Shelf {
            shown: settings.path.clone(),
            folder: directory,
            spider: spider.name.clone(),
            columns: Columns::new(spider),
            rotate: settings.rotate.unwrap_or(FileSink::FOLDER_ROTATE).as_u64(),
            sync: settings.sync,
            spool: Mutex::default(),
            orphans: Mutex::default(),
            turning: Arc::default(),
        });
        let watched = Arc::downgrade(&shelf);
        tokio::spawn(async move {
            while let Some(shelf) = watched.upgrade() {
                shelf.tend_behind();
                drop(shelf);
                tokio::time::sleep(TOUCH_INTERVAL).await;
            }
        });
        Ok(Self { name: format!("parquet {}", settings.path.display()), shelf })
    }
}

#[async_trait]
impl Sink for Parquet {
    fn name(&self) -> &str {
        &self.name
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        let items = pages.iter().flat_map(|page| &page.items);
        let lines = json(items).map_err(|error| disk::failed(&self.shelf.shown, &error))?;
        if lines.is_empty() {
            return Ok(());
        }
        let shelf = Arc::clone(&self.shelf);
        let length = in_background(&self.shelf.shown, move || shelf.append(&lines)).await?;
        if length >= self.shelf.rotate {
            self.shelf.turn_behind();
        }
        Ok(())
    }

    async fn close(&self) -> Result<()> {
        let _turn = self.shelf.turning.lock().await;
        let shelf = Arc::clone(&self.shelf);
        in_background(&self.shelf.shown, move || shelf.turn()).await
    }
}

impl Shelf {
    /// Appends to the spool, and returns its length.
    fn append(&self, lines: &[Vec<u8>]) -> io::Result<u64> {
        let mut place = self.spool.lock();
        let mut spool = match place.take() {
            Some(spool) => spool,
            None => {
                let name = orphans::growing_name(&parts::fresh_name(self.spider.as_str()), turn::SPOOL);
                let file = Growing::open(self.folder.clone(), Path::new(&name), plain_json(self.sync))?;
                Spool { file, since: Instant::now() }
            }
        };
        let appended = spool.file.append(lines).and_then(|()| spool.file.len());
        let (path, file) = spool.file.place();
        // If it was taken over, it is unknown whether it had these lines: they go to the next one.
        orphans::check_own(path, file)?;
        *place = Some(spool);
        appended
    }

    /// Converts spools in the background, unless that is running already.
    fn turn_behind(self: &Arc<Self>) {
        self.behind(Self::turn);
    }

    /// Shows in the background that the spool has a process, and converts orphaned ones, and this one if it is old.
    fn tend_behind(self: &Arc<Self>) {
        self.behind(|shelf| {
            let is_old = match &*shelf.spool.lock() {
                Some(spool) => {
                    orphans::beat(spool.file.place().1)?;
                    spool.since.elapsed() >= MAX_SPOOL_AGE
                }
                None => false,
            };
            if is_old { shelf.turn() } else { shelf.turn_orphans() }
        });
    }

    fn behind(self: &Arc<Self>, work: impl FnOnce(&Self) -> io::Result<()> + Send + 'static) {
        let Ok(turn) = Arc::clone(&self.turning).try_lock_owned() else { return };
        let shelf = Arc::clone(self);
        spawn_blocking(move || {
            if let Err(error) = work(&shelf) {
                warn!(folder = %shelf.shown.display(), %error, "no Parquet file yet; the items are in the spool");
            }
            drop(turn);
        });
    }

    /// Releases the spool, and converts each orphaned one of this spider.
    fn turn(&self) -> io::Result<()> {
        if let Some(spool) = self.spool.lock().take() {
            self.orphans.lock().let_go(spool.file.place().0.to_owned());
        }
        self.turn_orphans()
    }

    fn turn_orphans(&self) -> io::Result<()> {
        turn::all(self.folder.path(), &self.spider, &self.columns, &mut self.orphans.lock())
    }
}
