//! Replaying dead letters.

use std::sync::Arc;
use std::time::Duration;

use super::Failed;
use crate::frontier::Key;
use crate::frontier::crawl::CrawlStats;
use crate::health::Health;
use crate::names::{CrawlId, CrawlRef};
use crate::ports::{Control, CrawlSession, Engine, Error, ErrorKind, Opening, Result, Stats, Terms};

/// How long the replay of a process that dies keeps its crawl open.
const LEASE: Duration = Duration::from_secs(60);

/// Replays the dead letters of one crawl into the crawl itself, or, if it is over, into a successor, which stays open
/// until [`Replay::close`].
pub struct Replay<'a> {
    engine: &'a dyn Engine,
    from: CrawlRef,
    into: CrawlRef,
    session: Option<Box<dyn CrawlSession>>,
}

impl<'a> Replay<'a> {
    /// Creates a replay for the dead letters of the crawl with these stats.
    pub async fn new(crawl: &CrawlStats, engine: &'a dyn Engine, stats: &dyn Stats) -> Result<Self> {
        let from = crawl.crawl_ref();
        if !crawl.status.is_over() {
            return Ok(Self { engine, into: from.clone(), from, session: None });
        }
        let into = successor(crawl, stats).await?;
        let Terms { recrawl, file, .. } = stats.terms(&from).await?;
        let terms = Terms { recrawl, file, replays: Some(crawl.period()), ..Terms::default() };
        let text = stats.spider_text(&from).await?;
        let (crawl, judging) = (into.clone(), Some(crawl.judging.clone()));
        let opening = Opening { crawl, terms, text, judging, is_new: false, lease: LEASE, reads: None };
        let session = engine.open(opening, Arc::new(Health::fail_fast())).await?;
        Ok(Self { engine, from, into, session: Some(session) })
    }

    /// The crawl that the dead letters come from.
    pub fn source(&self) -> &CrawlRef {
        &self.from
    }

    /// The crawl that the dead letters are admitted to.
    pub fn target(&self) -> &CrawlRef {
        &self.into
    }

    /// Removes URLs and tasks from the list and makes them pending again, with no failure counted. Entries that are
    /// neither stay. Returns the number of entries moved.
    pub async fn send(&self, dead_letters: &[Failed]) -> Result<u64> {
        let keys: Vec<Key> = dead_letters.iter().filter_map(Failed::key).collect();
        if keys.is_empty() {
            return Ok(0);
        }
        self.engine.replay(&self.from, &self.into, &keys).await
    }

    /// Ends the replay, after which the successor may finish. When it returns, `control` has made it as durable as it
    /// can be.
    pub async fn close(self, control: &dyn Control) -> Result<()> {
        if let Some(session) = self.session {
            session.close().await?;
        }
        control.await_durable(&self.into).await
    }
}

/// Returns the first of `<crawl>.r1`, `.r2`, … that is not over.
async fn successor(crawl: &CrawlStats, stats: &dyn Stats) -> Result<CrawlRef> {
    for number in 1.. {
        let id: CrawlId = format!("{}.r{number}", crawl.crawl)
            .parse()
            .map_err(|error| Error::new(ErrorKind::Refused, error))?;
        if stats.crawl_stats(&id).await?.is_none_or(|stats| !stats.status.is_over()) {
            return Ok(CrawlRef { id, spider: crawl.spider.clone() });
        }
    }
    unreachable!("numbers do not end")
}
