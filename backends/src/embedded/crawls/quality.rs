//! Pauses crawls whose last pages yield too little.

use std::collections::HashMap;

use rusqlite::Connection;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::judging::{Judging, Quality};
use trawl_common::frontier::quality::QualityWindow;

use crate::embedded::crawls;
use crate::embedded::crawls::commands;
use crate::embedded::crawls::crawl_stats::{self, Clock};
use crate::embedded::store::Memory;
use crate::embedded::store::error::Result;

/// The crawls that are judged while they run, by row. A rolled-back look does no harm: the next is a few pages later.
#[derive(Default)]
pub(crate) struct Watched(HashMap<i64, (Quality, QualityWindow)>);

impl Watched {
    /// Begins to look at a crawl that is judged while it runs; one that is looked at already keeps its window.
    pub(crate) fn watch(&mut self, crawl: i64, judging: &Judging) {
        match &judging.quality {
            Some(quality) => {
                let (known, _) =
                    self.0.entry(crawl).or_insert_with(|| (quality.clone(), QualityWindow::default()));
                known.clone_from(quality);
            }
            None => self.forget(crawl),
        }
    }

    /// Forgets the last pages of a crawl that is resumed.
    pub(crate) fn restart(&mut self, crawl: i64) {
        if let Some((_, window)) = self.0.get_mut(&crawl) {
            *window = QualityWindow::default();
        }
    }

    /// Forgets a crawl that is over, or is not judged while it runs.
    pub(crate) fn forget(&mut self, crawl: i64) {
        self.0.remove(&crawl);
    }
}

/// Looks at the last pages of a crawl if it is time, and pauses it if they yield too little.
pub(crate) fn look(db: &Connection, memory: &mut Memory, key: i64) -> Result<()> {
    let Some((quality, window)) = memory.watched.0.get_mut(&key) else { return Ok(()) };
    let pages: i64 = db
        .prepare_cached("SELECT done + failed FROM crawls WHERE key = ?1")?
        .query_row([key], |row| row.get(0))?;
    if pages.unsigned_abs() < window.next_look(quality) {
        return Ok(());
    }
    let crawl = crawls::at(db, key)?;
    if crawl.status == CrawlState::Running
        && let Some(stats) = crawl_stats::of(db, Clock::Runs, &crawl.crawl.id)?
        && let Some(why) = window.look(quality, &stats)
    {
        commands::hold(db, &crawl.crawl, &why)?;
    }
    Ok(())
}
