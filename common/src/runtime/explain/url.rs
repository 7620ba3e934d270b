//! The state of a URL and everything known of it, read from the ports.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::url_words::Words;
use super::{Explainer, Workers, now};
use crate::frontier::crawl::{CrawlState, CrawlStats};
use crate::frontier::dead_letter::DeadLetterEntry;
use crate::frontier::{Key, Request, RequestKey, UrlState};
use crate::names::{CrawlRef, SpiderName};
use crate::politeness::robots::Robots;
use crate::ports::{ErrorKind, HostState, Result, Seen};
use crate::spider::page_history::{NOT_MODIFIED, Visited};
use crate::web::host::HostKey;
use crate::web::url::CanonicalUrl;

/// Everything known of a URL or a request.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlReport {
    /// The key of its record.
    pub key: Key,
    /// The key of the schedule that it shares.
    pub host: HostKey,
    /// The state of that schedule, if it was used lately.
    pub schedule: Option<HostState>,
    /// The verdict of robots.txt.
    pub robots: RobotsVerdict,
    /// The request, while a crawl has it or it is a dead letter.
    pub request: Option<Arc<Request>>,
    /// The crawls that know more of it than that their spider has seen it, the newest first.
    pub crawls: Vec<InCrawl>,
    /// The spiders that have seen it, or remember its page.
    pub spiders: Vec<OfSpider>,
}

impl UrlReport {
    /// Returns whether any crawl or spider knows it.
    pub fn is_known(&self) -> bool {
        !(self.crawls.is_empty() && self.spiders.is_empty())
    }

    /// Returns whether one of its crawls has it, or its spider has seen it.
    fn is_seen(&self) -> bool {
        self.crawls.iter().any(|known| known.dead_letter.is_some() || known.state != UrlState::Unseen)
    }
}

/// The state of a URL in a crawl.
#[derive(Clone, Debug, PartialEq)]
pub struct InCrawl {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The state of the crawl.
    pub status: CrawlState,
    /// The state of the URL in it.
    pub state: UrlState,
    /// Its dead letter, if it has one.
    pub dead_letter: Option<DeadLetterEntry>,
    /// How it ended; `None` if it has not, is a dead letter, or nothing tells.
    pub outcome: Option<PageOutcome>,
    /// Sentences about its state, the reason, and what happens next.
    pub words: Vec<String>,
}

/// The end of a page that its spider remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOutcome {
    /// It was fetched and stored.
    Done,
    /// It was left out, because its server said that it had not changed.
    Skipped,
}

impl PageOutcome {
    fn new(page: &Visited) -> Self {
        let is_unread = page.answer.as_ref().is_some_and(|answer| answer.status == NOT_MODIFIED);
        if is_unread { Self::Skipped } else { Self::Done }
    }
}

/// The state of a URL in a spider's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct OfSpider {
    /// The spider.
    pub spider: SpiderName,
    /// Whether the spider has seen it.
    pub seen: Seen,
    /// The page history, if any.
    pub page: Option<Visited>,
    /// Sentences about it.
    pub words: Vec<String>,
}

/// The verdict of robots.txt on a URL, by the settings for all spiders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum RobotsVerdict {
    /// The URL may be fetched.
    Allowed,
    /// The URL is skipped when it is due.
    Forbidden,
    /// The file could not be read, which forbids everything for now.
    Unreadable,
    /// The file is not cached: it is requested before the URL is.
    Unknown,
    /// Settings say not to obey robots.txt.
    Ignored,
}

/// Returns the key of the GET of a URL that carries data, as all pages of a spider that carries values are requested;
/// `None` for the key of a request.
fn with_data(key: &Key) -> Option<Key> {
    key.url().map(|url| RequestKey::of_get(url).into())
}

impl Explainer<'_> {
    /// Searches all crawls for a URL, or for a request of it. The name of a URL that none of them knows stands for the
    /// GET of it that carries data.
    pub async fn url(&self, url: &CanonicalUrl, key: &Key) -> Result<UrlReport> {
        let report = self.by_key(url, key).await?;
        let Some(other) = with_data(key).filter(|_| !report.is_known()) else { return Ok(report) };
        let with_data = self.by_key(url, &other).await?;
        Ok(if with_data.is_known() { with_data } else { report })
    }

    async fn by_key(&self, url: &CanonicalUrl, key: &Key) -> Result<UrlReport> {
        let asked = self.asked(url).await?;
        let all = self.stats.crawls().await?;
        let mut spiders: Vec<SpiderName> = all.iter().map(|stats| stats.spider.clone()).collect();
        spiders.sort();
        spiders.dedup();
        let mut report = UrlReport {
            key: key.clone(),
            host: asked.host.clone(),
            schedule: asked.schedule.clone(),
            robots: asked.robots,
            request: None,
            crawls: Vec::new(),
            spiders: Vec::new(),
        };
        for stats in &all {
            let (known, request) = self.in_crawl(key, stats, &asked).await?;
            report.request = report.request.or(request);
            let has_details = known.dead_letter.is_some() || matches!(known.state, UrlState::Pending(_));
            report.crawls.extend(has_details.then_some(known));
        }
        for spider in spiders {
            report.spiders.extend(self.of_spider(key, spider).await?);
        }
        Ok(report)
    }

    /// Returns the state in one crawl of a URL or a request of it, with everything else known of it. The name of a URL
    /// that its spider has not seen stands for the GET of it that carries data.
    pub async fn url_in(&self, url: &CanonicalUrl, key: &Key, crawl: &CrawlStats) -> Result<UrlReport> {
        let report = self.by_key_in(url, key, crawl).await?;
        let Some(other) = with_data(key).filter(|_| !report.is_seen()) else { return Ok(report) };
        let with_data = self.by_key_in(url, &other, crawl).await?;
        Ok(if with_data.is_seen() { with_data } else { report })
    }

    async fn by_key_in(&self, url: &CanonicalUrl, key: &Key, crawl: &CrawlStats) -> Result<UrlReport> {
        let asked = self.asked(url).await?;
        let (mut known, request) = self.in_crawl(key, crawl, &asked).await?;
        let spider = self.of_spider(key, crawl.spider.clone()).await?;
        let page = spider.as_ref().and_then(|known| known.page.as_ref());
        if let (UrlState::Ended, None) = (&known.state, &known.dead_letter) {
            known.outcome = page.filter(|page| self.is_of(page, crawl)).map(PageOutcome::new);
            known.words = super::url_words::ended(&known.crawl, known.outcome);
        }
        Ok(UrlReport {
            key: key.clone(),
            host: asked.host,
            schedule: asked.schedule,
            robots: asked.robots,
            request,
            crawls: vec![known],
            spiders: spider.into_iter().collect(),
        })
    }

    /// Whether a page was last visited by this crawl. That of one process may have paused in between.
    fn is_of(&self, page: &Visited, crawl: &CrawlStats) -> bool {
        let took = Duration::try_from_secs_f64(crawl.seconds).unwrap_or_default();
        let is_before_end = page.fetched_at <= crawl.started.plus(took);
        page.is_since(crawl.started) && (is_before_end || !crawl.status.is_over() || !self.is_fleet)
    }

    async fn asked(&self, url: &CanonicalUrl) -> Result<AskedOnce> {
        let policy = self.settings.politeness.host_policy(&url.host());
        let schedule = self.hosts.host(&policy.key).await?;
        let robots = if policy.robots { self.robots(url).await? } else { RobotsVerdict::Ignored };
        let workers = Workers::ask(self).await?;
        Ok(AskedOnce { host: policy.key, schedule, robots, workers })
    }

    async fn robots(&self, url: &CanonicalUrl) -> Result<RobotsVerdict> {
        let Some(name) = self.settings.fetch.robots_name() else { return Ok(RobotsVerdict::Unknown) };
        let key = self.settings.politeness.robots_key(&url.origin());
        let file = match self.hosts.known_robots(&key).await {
            // A worker requests it anew.
            Err(error) if error.kind == ErrorKind::Corrupt => None,
            known => known?,
        };
        Ok(match file.map(|file| Robots::new(&file, &name)) {
            None => RobotsVerdict::Unknown,
            Some(None) => RobotsVerdict::Unreadable,
            Some(Some(robots)) if robots.allows(url) => RobotsVerdict::Allowed,
            Some(Some(_)) => RobotsVerdict::Forbidden,
        })
    }

    /// Returns the request under this key, if it is one that the crawl still has and that can be read.
    async fn request(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Arc<Request>>> {
        if !key.is_request() {
            return Ok(None);
        }
        Ok(self.control.readable_work(crawl, key).await?.and_then(|work| work.request().cloned()))
    }

    /// Returns the state in a crawl; for a request with its payload.
    async fn in_crawl(
        &self,
        key: &Key,
        stats: &CrawlStats,
        asked: &AskedOnce,
    ) -> Result<(InCrawl, Option<Arc<Request>>)> {
        let crawl = stats.crawl_ref();
        let request = self.request(&crawl, key).await?;
        let state = self.stats.url_state(&crawl, key).await?;
        let dead_letter = match state {
            UrlState::Pending(_) => None,
            UrlState::Unseen | UrlState::Ended => self.control.failure(&crawl, key).await?,
        };
        let AskedOnce { schedule, robots, workers, .. } = asked;
        let own = request.as_ref().and_then(|own| own.new.retries);
        let words = Words {
            crawl: &crawl,
            status: stats.status,
            state: &state,
            dead_letter: dead_letter.as_ref(),
            schedule: schedule.as_ref(),
            robots: *robots,
            workers,
            retries: own.unwrap_or(self.settings.retry.max),
            is_own: own.is_some(),
            now: now(),
        };
        let words = words.all();
        let known = InCrawl { crawl, status: stats.status, state, dead_letter, outcome: None, words };
        Ok((known, request))
    }

    /// Returns `None` if the spider knows nothing of it. There is no page history for requests.
    async fn of_spider(&self, key: &Key, spider: SpiderName) -> Result<Option<OfSpider>> {
        let keys = std::slice::from_ref(key);
        let seen = self.stats.seen_urls(&spider, keys).await?.first().copied().unwrap_or(Seen::Never);
        let page = match key.url() {
            Some(url) => {
                self.pages.look(&spider, std::slice::from_ref(url)).await?.into_iter().flatten().next()
            }
            None => None,
        };
        let words = super::url_words::of_spider(&spider, seen, page.as_ref());
        let is_known = seen != Seen::Never || page.is_some();
        Ok(is_known.then_some(OfSpider { spider, seen, page, words }))
    }
}

/// Data that is read once for all crawls.
struct AskedOnce {
    host: HostKey,
    schedule: Option<HostState>,
    robots: RobotsVerdict,
    workers: Workers,
}
