//! Pauses crawls whose last pages yield too little. The script that ends pages says when a crawl is to be looked at.

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::judging::Judging;
use trawl_common::frontier::quality::QualityWindow;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{ErrorKind, HoldCrawl, Result};

use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;

/// The field with the number of pages, done or failed, at which the crawl is looked at next (`settle/finish.lua`).
const NEXT_LOOK: &str = "look";
/// The field with the last looks.
const WINDOW: &str = "window";
/// The field that says that the crawl is held as its last pages yield too little.
pub(crate) const LOW_QUALITY: &str = "low_quality";

impl RedisRecords {
    /// Begins to look at a crawl that is judged while it runs; one that is looked at already keeps its window.
    pub(crate) async fn watch_quality(&self, crawl: &CrawlRef, judging: &Judging) -> Result<()> {
        let told = CrawlKeys::new(crawl).told;
        if judging.quality.is_some() {
            return self.redis.query(redis::cmd("HSETNX").arg(told).arg(NEXT_LOOK).arg(0)).await;
        }
        self.redis.query(redis::cmd("HDEL").arg(told).arg(NEXT_LOOK).arg(WINDOW)).await
    }

    /// Looks at the last pages of a crawl, and pauses it if they yield too little. Its window is left as it is then,
    /// so that another worker looks again if this one dies before the crawl is paused.
    pub(crate) async fn look_at_quality(&self, crawl: &CrawlRef) -> Result<()> {
        let Some(stats) = self.read_stats(crawl).await? else { return Ok(()) };
        let Some(quality) = &stats.judging.quality else {
            return self.watch_quality(crawl, &stats.judging).await;
        };
        if stats.status != CrawlState::Running {
            return Ok(());
        }
        let told = CrawlKeys::new(crawl).told;
        let kept: Option<String> = self.redis.query(redis::cmd("HGET").arg(&told).arg(WINDOW)).await?;
        // One that somebody has written over begins anew.
        let mut window: QualityWindow =
            kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let Some(why) = window.look(quality, &stats) else {
            let text = serde_json::to_string(&window).unwrap_or_default();
            let next = window.next_look(quality);
            let keep = redis::cmd("HSET").arg(told).arg(NEXT_LOOK).arg(next).arg(WINDOW).arg(text).to_owned();
            return self.write(&keep).await;
        };
        self.keep_noted(crawl, LOW_QUALITY, &1).await?;
        match self.hold(crawl, &why).await {
            // Somebody has cancelled it meanwhile.
            Err(error) if error.kind == ErrorKind::Stale => Ok(()),
            held => held,
        }
    }

    /// Forgets the last pages of a crawl that is about to be resumed.
    pub(crate) async fn restart_window(&self, crawl: &CrawlRef) -> Result<()> {
        let told = CrawlKeys::new(crawl).told;
        let is_watched: bool = self.redis.query(redis::cmd("HEXISTS").arg(&told).arg(NEXT_LOOK)).await?;
        match is_watched {
            true => {
                self.write(redis::cmd("HSET").arg(told).arg(NEXT_LOOK).arg(0).arg(WINDOW).arg("[]")).await
            }
            false => Ok(()),
        }
    }
}
