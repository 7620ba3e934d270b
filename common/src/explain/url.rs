//! Where a URL is, and what is known of it: asked of the ports.

use std::sync::Arc;

use serde::Serialize;

use super::url_words::Words;
use super::{Explainer, Workers, now};
use crate::frontier::crawl::{CrawlState, CrawlStats};
use crate::frontier::dead_letter::Note;
use crate::frontier::{Key, Request, UrlState};
use crate::names::{CrawlRef, SpiderName};
use crate::politeness::robots::Robots;
use crate::ports::{ErrorKind, HostState, Result, Seen};
use crate::spider::page_history::Visited;
use crate::web::host::HostKey;
use crate::web::url::CanonicalUrl;

/// All that is known of a URL or a request.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlReport {
    /// What names it.
    pub key: Key,
    /// With what it shares a rate.
    pub host: HostKey,
    /// How that is asked, if it was lately.
    pub schedule: Option<HostState>,
    /// What robots.txt says.
    pub robots: RobotsVerdict,
    /// The request, as long as a crawl has it or it is a dead letter.
    pub request: Option<Arc<Request>>,
    /// The crawls that know more of it than that their spider has seen it, the newest first.
    pub crawls: Vec<InCrawl>,
    /// The spiders that have seen it, or remember its page.
    pub spiders: Vec<OfSpider>,
}

impl UrlReport {
    /// Whether any crawl or spider knows it.
    pub fn is_known(&self) -> bool {
        !(self.crawls.is_empty() && self.spiders.is_empty())
    }
}

/// What a crawl knows of a URL.
#[derive(Clone, Debug, PartialEq)]
pub struct InCrawl {
    /// Which.
    pub crawl: CrawlRef,
    /// Where the crawl stands.
    pub status: CrawlState,
    /// Where the URL stands in it.
    pub state: UrlState,
    /// Why it reached no good end.
    pub dead_letter: Option<Note>,
    /// Where it is, why, and what happens next.
    pub words: Vec<String>,
}

/// What a spider knows of a URL.
#[derive(Clone, Debug, PartialEq)]
pub struct OfSpider {
    /// Which.
    pub spider: SpiderName,
    /// How it stands to it.
    pub seen: Seen,
    /// What it remembers of the page.
    pub page: Option<Visited>,
    /// In words.
    pub words: Vec<String>,
}

/// What robots.txt says of a URL, as the settings speak for all spiders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum RobotsVerdict {
    /// It may be fetched.
    Allowed,
    /// It is skipped when it is due.
    Forbidden,
    /// The file could not be read, which forbids everything for now.
    Unreadable,
    /// The file is not kept: it is asked for before the URL is.
    Unknown,
    /// Settings say not to ask.
    Ignored,
}

impl Explainer<'_> {
    /// Looks for a URL in all crawls, or for a request for it.
    pub async fn url(&self, url: &CanonicalUrl, key: &Key) -> Result<UrlReport> {
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

    /// What one crawl knows of a URL or of a request for it, with what is known of it beside.
    pub async fn url_in(&self, url: &CanonicalUrl, key: &Key, crawl: &CrawlStats) -> Result<UrlReport> {
        let asked = self.asked(url).await?;
        let (known, request) = self.in_crawl(key, crawl, &asked).await?;
        let spider = self.of_spider(key, crawl.spider.clone()).await?;
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
            // A worker asks for it anew.
            Err(error) if error.kind == ErrorKind::Corrupt => None,
            known => known?,
        };
        Ok(match file.map(|file| Robots::of(&file, &name)) {
            None => RobotsVerdict::Unknown,
            Some(None) => RobotsVerdict::Unreadable,
            Some(Some(robots)) if robots.allows(url) => RobotsVerdict::Allowed,
            Some(Some(_)) => RobotsVerdict::Forbidden,
        })
    }

    /// The request under this key, if it is one that the crawl still has and that can be read.
    async fn request(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Arc<Request>>> {
        if !key.is_request() {
            return Ok(None);
        }
        Ok(self.control.readable_work(crawl, key).await?.and_then(|work| work.request().cloned()))
    }

    /// With the request, if it is one.
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
        let words = Words {
            crawl: &crawl,
            status: stats.status,
            state: &state,
            dead_letter: dead_letter.as_ref(),
            schedule: schedule.as_ref(),
            robots: *robots,
            workers,
            retries: request.as_ref().and_then(|own| own.new.retries).unwrap_or(self.settings.retry.max),
            now: now(),
        };
        let words = words.all();
        Ok((InCrawl { crawl, status: stats.status, state, dead_letter, words }, request))
    }

    /// `None` if the spider knows nothing of it. Of the page of a request nothing is remembered.
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

/// What is asked once for all crawls.
struct AskedOnce {
    host: HostKey,
    schedule: Option<HostState>,
    robots: RobotsVerdict,
    workers: Workers,
}
