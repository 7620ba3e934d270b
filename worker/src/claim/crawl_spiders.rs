//! The spiders of crawls, each in the version that its crawl needs.

use std::sync::Arc;

use moka::sync::Cache;
use tracing::{error, warn};
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Fatal, SpiderTexts, Terms};
use trawl_common::spider::SpiderText;

use crate::programs::Running;
use crate::spiders::{LoadedSpider, Spiders};

/// Maximum number of crawls to remember: whether they have their own copy of the spider's file, and whether
/// it was compared with the local one.
const MAX_CRAWLS: u64 = 1_000;

/// The spiders of crawls.
#[derive(Clone)]
pub(crate) struct CrawlSpiders {
    spiders: Arc<Spiders>,
    kept: Arc<dyn SpiderTexts>,
    health: Arc<Health>,
    /// The spiders' files of crawls that have their own copy.
    texts: Cache<CrawlRef, Option<SpiderText>>,
    /// The crawls whose spider's file was compared with the local one.
    compared: Cache<CrawlRef, ()>,
}

impl CrawlSpiders {
    pub(crate) fn new(spiders: Arc<Spiders>, kept: Arc<dyn SpiderTexts>, health: Arc<Health>) -> Self {
        Self { spiders, kept, health, texts: Cache::new(MAX_CRAWLS), compared: Cache::new(MAX_CRAWLS) }
    }

    /// Returns the spiders of this worker.
    pub(crate) fn all(&self) -> &Spiders {
        &self.spiders
    }

    /// Returns the spider of a crawl's task, or the reason why it cannot be used here. A spider without a
    /// file has no program, and is not loaded.
    pub(crate) async fn of(
        &self,
        crawl: &CrawlRef,
        terms: &Terms,
    ) -> Result<Result<Arc<LoadedSpider>, String>, Fatal> {
        self.learn_project(crawl).await?;
        let text = self.text(crawl, terms).await?;
        let is_known = text.is_some() || self.spiders.is_for_strangers(&crawl.spider);
        Ok(match is_known {
            true => self.spider(crawl, terms, text.as_ref()),
            false => Err(self.lack(crawl, text.as_ref())),
        })
    }

    /// Asks for the project of a crawl's spider, unless that is known.
    pub(super) async fn learn_project(&self, crawl: &CrawlRef) -> Result<(), Fatal> {
        self.spiders.learn_project(&crawl.spider, &self.health).await
    }

    /// Returns the reason why a crawl's spider cannot be used here.
    fn lack(&self, crawl: &CrawlRef, text: Option<&SpiderText>) -> String {
        self.spiders.wrong(&crawl.spider, text).unwrap_or_else(|| "its file is not there".to_owned())
    }

    /// Returns the spider's file of a crawl, if the crawl has its own copy; fetched once.
    pub(super) async fn text(&self, crawl: &CrawlRef, terms: &Terms) -> Result<Option<SpiderText>, Fatal> {
        if terms.file.is_none() {
            return Ok(None);
        }
        if let Some(known) = self.texts.get(crawl) {
            return Ok(known);
        }
        let looking = || self.kept.spider_text(crawl);
        let text = self.health.insist("looking up a crawl's spider", looking).await?;
        self.texts.insert(crawl.clone(), text.clone());
        Ok(text)
    }

    /// Returns a crawl's spider: from the crawl's own copy of its file, or else from the local one. An error is the
    /// reason why it cannot be used here now.
    pub(super) fn spider(
        &self,
        crawl: &CrawlRef,
        terms: &Terms,
        text: Option<&SpiderText>,
    ) -> Result<Arc<LoadedSpider>, String> {
        let spiders = &self.spiders;
        let spider = match text {
            Some(text) => spiders.of_text(&crawl.spider, text),
            None => spiders.get(&crawl.spider).filter(|spider| self.can_be_worked_with(crawl, terms, spider)),
        };
        let spider = spider.ok_or_else(|| self.lack(crawl, text))?;
        match spider.program.as_ref().and_then(Running::trouble) {
            Some(why) => Err(why),
            None => Ok(spider),
        }
    }

    /// Whether the local version of a crawl's spider may be used. Without the file that the crawl was opened
    /// with, pages would be read by the settings alone, and their links not followed. A difference is logged
    /// once.
    fn can_be_worked_with(&self, crawl: &CrawlRef, terms: &Terms, spider: &LoadedSpider) -> bool {
        let (theirs, ours) = (terms.file, spider.spider.file);
        if theirs.is_some() && ours != theirs && self.compared.get(crawl).is_none() {
            self.compared.insert(crawl.clone(), ());
            let CrawlRef { id, spider } = crawl;
            match ours {
                None => {
                    error!(crawl = %id, %spider, "the crawl's spider has a file, which is not here: its URLs are left to other workers")
                }
                Some(_) => {
                    warn!(
                        crawl = %id, %spider,
                        "the spider's file here is not the one that the crawl was opened with: what it says of pages holds from now on, \
                         max_pages and max_per_host once sources are read into the crawl again (producer --crawl {id}, or the same trawl crawl)"
                    )
                }
            }
        }
        theirs.is_none() || ours.is_some()
    }
}
