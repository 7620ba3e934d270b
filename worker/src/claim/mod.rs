//! Claims URLs, each with the spider that its crawl needs.

mod crawl_spiders;
mod requests;

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;
use trawl_common::frontier::outcome::{Outcome, Skip};
use trawl_common::ports::{Claimed, Fatal, Frontier};
use trawl_common::spider::SpiderText;
use trawl_common::time::UnixMs;
use trawl_common::trace;

pub(crate) use self::crawl_spiders::CrawlSpiders;
pub(crate) use self::requests::SpiderRequests;
use crate::claimed::ClaimedUrl;
use crate::claimed::settlement::Settlement;
use crate::telemetry::idle_reasons::{IdleReasons, requeue};
use crate::telemetry::lateness::Lateness;

/// Claims URLs, and finds their spiders. Those that need no fetch are passed on to be settled at once.
pub(crate) struct Claims {
    frontier: Arc<dyn Frontier>,
    idle_reasons: Arc<IdleReasons>,
    lateness: Arc<Lateness>,
    settle: mpsc::Sender<Settlement>,
    taken: VecDeque<Claimed>,
    urls: VecDeque<ClaimedUrl>,
    spiders: CrawlSpiders,
}

impl Claims {
    pub(crate) fn new(
        frontier: Arc<dyn Frontier>,
        idle_reasons: Arc<IdleReasons>,
        lateness: Arc<Lateness>,
        spiders: CrawlSpiders,
        settle: mpsc::Sender<Settlement>,
    ) -> Self {
        let (taken, urls) = Default::default();
        Self { frontier, idle_reasons, lateness, settle, taken, urls, spiders }
    }

    /// Waits for the next URLs, and returns between one and `most`. `None` when settling has stopped.
    /// Cancelling the call loses nothing.
    pub(crate) async fn up_to(&mut self, most: usize) -> Result<Option<Vec<ClaimedUrl>>, Fatal> {
        while self.urls.is_empty() {
            if self.taken.is_empty() {
                self.taken.extend(self.frontier.claim(most).await?);
            }
            while let Some(next) = self.taken.front() {
                // The calls that wait come first: if one is cancelled, nothing has been taken yet.
                self.spiders.learn_project(&next.message.crawl).await?;
                let text = self.spiders.text(&next.message.crawl, &next.crawl.terms).await?;
                let Ok(room) = self.settle.reserve().await else { return Ok(None) };
                match self.taken.pop_front().map(|taken| self.with_spider(taken, text)) {
                    Some(Ok(claimed)) => self.urls.push_back(claimed),
                    Some(Err(settlement)) => room.send(*settlement),
                    None => {}
                }
            }
        }
        let count = most.min(self.urls.len());
        Ok(Some(self.urls.drain(..count).collect()))
    }

    fn with_spider(
        &self,
        Claimed { mut message, attempts, starts, is_beyond_limit, crawl }: Claimed,
        text: Option<SpiderText>,
    ) -> Result<ClaimedUrl, Box<Settlement>> {
        trace::take_up(&mut message);
        let settled = |message, outcome| Err(Box::new(Settlement::new(message, outcome)));
        if is_beyond_limit {
            return settled(message, Outcome::Skipped(Skip::Limit));
        }
        let spider = match self.spiders.spider(&message.crawl, &crawl.terms, text.as_ref()) {
            Ok(spider) => spider,
            Err(why) => {
                // Another worker may have the file, or the files that it refers to.
                let outcome = self.idle_reasons.requeue(&message, &why);
                return settled(message, outcome);
            }
        };
        // Tasks are claimed separately.
        let Some(url) = message.work.page().cloned() else {
            let outcome = requeue(&message);
            return settled(message, outcome);
        };
        self.idle_reasons.note_work_for(&message.crawl.spider);
        let now = UnixMs::now();
        if let Some(until) = message.until {
            self.lateness.note(now.since(until), Instant::now());
        }
        let is_expired = message.is_expired(now);
        let claimed =
            ClaimedUrl { url, message, attempts, starts, waits_for_host_only: false, crawl, spider };
        match is_expired {
            true => Err(Box::new(Settlement::from_url(claimed, Outcome::Expired))),
            false => Ok(claimed),
        }
    }
}
