//! Events of a crawl that are to be announced. The sweeper notices an event again until it has been announced.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use trawl_common::events::{CrawlEvent, EventKind};
use trawl_common::explain;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Result, WorkerState};
use trawl_common::settings::Log;
use trawl_common::time::UnixMs;

use crate::redis::RedisRecords;
use crate::redis::crawls::quality::LOW_QUALITY;
use crate::redis::fields::Fields;
use crate::redis::keys::CrawlKeys;
use crate::redis::workers::logs::RedisLogs;

/// The field with the progress of the crawl, and the time since when it has been unchanged.
const PROGRESS: &str = "progress";
/// The field with the times of the last trouble that keeps workers from the crawl.
const TROUBLE: &str = "trouble";
/// The time without trouble after which further trouble is told again.
const CALM: Duration = Duration::from_secs(5 * 60);
/// The field that says how the result of the crawl is judged.
pub(crate) const JUDGING: &str = "judging";
/// The field that says that the log has the crawl's end.
pub(crate) const LOGGED: &str = "logged";

/// The field that says why the crawl is held.
pub(crate) const HELD: &str = "held";
/// Maximum number of sources that an event names as they were not read.
const MAX_UNREAD: usize = 5;

/// The number of ended URLs when it last changed, and the time of that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    ended: u64,
    since: UnixMs,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ended, self.since.0)
    }
}

impl FromStr for Progress {
    type Err = ();
    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (ended, since) = text.split_once(' ').ok_or(())?;
        Ok(Self { ended: ended.parse().map_err(drop)?, since: UnixMs(since.parse().map_err(drop)?) })
    }
}

/// The time since when workers have had trouble with the crawl, and when they were last seen to have it.
#[derive(Clone, Copy, Debug)]
struct Troubled {
    since: UnixMs,
    last: UnixMs,
}

impl fmt::Display for Troubled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.since.0, self.last.0)
    }
}

impl FromStr for Troubled {
    type Err = ();
    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (since, last) = text.split_once(' ').ok_or(())?;
        Ok(Self { since: UnixMs(since.parse().map_err(drop)?), last: UnixMs(last.parse().map_err(drop)?) })
    }
}

impl RedisRecords {
    /// Returns the events of a crawl that is not over, or whose end was not announced yet, except for the end itself.
    pub(crate) async fn notice(
        &self,
        crawl: &CrawlRef,
        workers: &[WorkerState],
        now: UnixMs,
    ) -> Result<Vec<CrawlEvent>> {
        let Some(stats) = self.read_stats(crawl).await? else { return Ok(Vec::new()) };
        let key = CrawlKeys::new(crawl).told;
        let stored: HashMap<String, String> = self.redis.query(redis::cmd("HGETALL").arg(&key)).await?;
        let noted = Fields::new(key, stored);
        let mut news = Vec::new();
        if noted.count(&EventKind::Started.to_string())? == 0 {
            news.push(CrawlEvent::started(stats.clone()));
        }
        let is_running = stats.status == CrawlState::Running;
        // A short crawl may have finished before it is looked at.
        let has_run = is_running || stats.status == CrawlState::Finished;
        let was_failing = noted.count(&EventKind::Failing.to_string())? > 0;
        if has_run && !was_failing && self.events.is_failing(&stats) {
            news.push(CrawlEvent { kind: EventKind::Failing, at: now, stats: stats.clone() });
        }
        let kind = if noted.count(LOW_QUALITY)? > 0 { EventKind::Quality } else { EventKind::Lapsed };
        let was_held = noted.count(&kind.to_string())? > 0;
        if stats.held.is_some() && !was_held {
            news.push(CrawlEvent { kind, at: now, stats: stats.clone() });
        }
        if is_running && stats.pending > 0 {
            news.extend(self.notice_trouble(&noted, workers, &stats, now).await?);
        }
        let progress = noted.read(PROGRESS)?;
        match is_running && stats.pending > 0 {
            true => news.extend(self.notice_stall(crawl, &noted, progress, stats, now).await?),
            // It has nothing to do, or is paused: the time starts anew afterwards.
            false => {
                // After a pause it has not stalled before that time has passed.
                let stall: Option<u64> = noted.read(&EventKind::Stalled.to_string())?;
                let is_held = !is_running && stall.is_some();
                if progress.is_some() || is_held {
                    self.forget_progress(crawl, is_held).await?;
                }
            }
        }
        Ok(news)
    }

    async fn notice_stall(
        &self,
        crawl: &CrawlRef,
        noted: &Fields,
        progress: Option<Progress>,
        stats: CrawlStats,
        now: UnixMs,
    ) -> Result<Option<CrawlEvent>> {
        let ended = stats.counts.ended();
        // Times later than `now` are from before the clock was set back.
        let Some(Progress { since, .. }) = progress.filter(|last| last.ended == ended && last.since <= now)
        else {
            self.keep_noted(crawl, PROGRESS, &Progress { ended, since: now }).await?;
            return Ok(None);
        };
        let was_noted = noted.read(&EventKind::Stalled.to_string())? == Some(ended);
        let has_stalled = self.events.has_stalled(now.since(since)) && !was_noted;
        let at = since.plus(self.events.stalled_after);
        let stats = CrawlStats { stalled: true, ..stats };
        Ok(has_stalled.then_some(CrawlEvent { kind: EventKind::Stalled, at, stats }))
    }

    /// Returns the event that workers have trouble with the crawl. It is told once they were seen twice to have it, as
    /// it may pass at once, and again only after [`CALM`].
    async fn notice_trouble(
        &self,
        noted: &Fields,
        workers: &[WorkerState],
        stats: &CrawlStats,
        now: UnixMs,
    ) -> Result<Option<CrawlEvent>> {
        let troubles = explain::spider_troubles(workers, &stats.spider);
        if troubles.is_empty() {
            return Ok(None);
        }
        let known: Option<Troubled> = noted.read(TROUBLE)?;
        let known = known.filter(|known| known.last <= now && now.since(known.last) < CALM);
        let since = known.map_or(now, |known| known.since);
        self.keep_noted(&stats.crawl_ref(), TROUBLE, &Troubled { since, last: now }).await?;
        let was_noted = noted.read(&EventKind::Degraded.to_string())? == Some(since.0);
        let stats = CrawlStats { troubles, ..stats.clone() };
        let event = CrawlEvent { kind: EventKind::Degraded, at: since, stats };
        Ok((known.is_some() && !was_noted).then_some(event))
    }

    /// Returns the events of a crawl that is over, which name the sources that were not read.
    pub(crate) async fn news_of_end(&self, crawl: &CrawlRef) -> Result<Vec<CrawlEvent>> {
        let Some(mut stats) = self.read_stats(crawl).await? else { return Ok(Vec::new()) };
        if stats.incomplete {
            // Reading does not depend on the log's limits.
            let logs = RedisLogs::new(self.redis.clone(), &Log::default());
            stats.unread = explain::unread(&logs, &crawl.id, MAX_UNREAD).await?;
        }
        Ok(CrawlEvent::of_end(stats).collect())
    }

    /// Forgets why the crawl was held: it goes on, and may be held again.
    pub(crate) async fn forget_held(&self, crawl: &CrawlRef) -> Result<()> {
        let mut forget = redis::cmd("HDEL");
        forget.arg(CrawlKeys::new(crawl).told).arg(HELD).arg(LOW_QUALITY);
        forget.arg(EventKind::Lapsed.to_string()).arg(EventKind::Quality.to_string());
        self.redis.query(&forget).await
    }

    /// Marks an event as announced, except for the end.
    pub(crate) async fn keep_announced(&self, event: &CrawlEvent) -> Result<()> {
        let value = match event.kind {
            // The crawl may continue, and stall again.
            EventKind::Stalled => event.stats.counts.ended(),
            EventKind::Degraded => event.at.0,
            _ => 1,
        };
        self.keep_noted(&event.stats.crawl_ref(), &event.kind.to_string(), &value).await
    }

    /// Kept apart from the crawl's own hash: a crawl that Redis has just forgotten must not seem to exist.
    pub(crate) async fn keep_noted(
        &self,
        crawl: &CrawlRef,
        field: &str,
        value: &impl fmt::Display,
    ) -> Result<()> {
        let key = CrawlKeys::new(crawl).told;
        self.write(redis::cmd("HSET").arg(key).arg(field).arg(value.to_string())).await
    }

    /// Forgets since when the crawl has made no progress, and if `with_stall`, that it has stalled.
    async fn forget_progress(&self, crawl: &CrawlRef, with_stall: bool) -> Result<()> {
        let mut forget = redis::cmd("HDEL");
        forget.arg(CrawlKeys::new(crawl).told).arg(PROGRESS);
        if with_stall {
            forget.arg(EventKind::Stalled.to_string());
        }
        self.redis.query(&forget).await
    }
}
