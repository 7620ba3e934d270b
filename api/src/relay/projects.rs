//! The projects of work.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use trawl_common::frontier::message::Message;
use trawl_common::names::{CrawlRef, ProjectName, SpiderName};
use trawl_common::ports::{self, Jobs, Result};

/// Maximum number of crawls, and of spiders, whose projects are remembered.
const MAX_REMEMBERED: u64 = 10_000;

/// The time for which the project of a spider is remembered: people may change it.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The projects of work: that of its spider, whatever else is said of the work; or else the one that a task names, that
/// of its crawl's job, or the default one.
pub(super) struct Projects {
    jobs: Arc<dyn Jobs>,
    made: Arc<dyn ports::Projects>,
    of_jobs: Cache<CrawlRef, ProjectName>,
    of_spiders: Cache<SpiderName, Option<ProjectName>>,
}

/// The projects of a piece of work.
pub(super) struct OfWork {
    pub(super) project: ProjectName,
    /// The project of its crawl.
    pub(super) of_crawl: ProjectName,
}

/// The projects of spiders that are in one.
pub(super) type Owners = HashMap<SpiderName, ProjectName>;

impl Projects {
    pub(super) fn new(jobs: Arc<dyn Jobs>, made: Arc<dyn ports::Projects>) -> Self {
        let of_spiders = Cache::builder().max_capacity(MAX_REMEMBERED).time_to_live(REMEMBERED).build();
        Self { jobs, made, of_jobs: Cache::new(MAX_REMEMBERED), of_spiders }
    }

    /// Returns the projects of a piece of work.
    pub(super) async fn of_work(&self, message: &Message) -> Result<OfWork> {
        if let Some(owner) = self.of_spider(&message.crawl.spider).await? {
            return Ok(OfWork { project: owner.clone(), of_crawl: owner });
        }
        let of_crawl = self.of_job(&message.crawl).await?;
        let own = message.work.task().and_then(|task| task.new.project.clone());
        Ok(OfWork { project: own.unwrap_or_else(|| of_crawl.clone()), of_crawl })
    }

    /// Returns the project of a crawl.
    pub(super) async fn of(&self, crawl: &CrawlRef) -> Result<ProjectName> {
        match self.of_spider(&crawl.spider).await? {
            Some(owner) => Ok(owner),
            None => self.of_job(crawl).await,
        }
    }

    /// Returns the projects of those of these spiders that are in one.
    pub(super) async fn owners(&self, spiders: BTreeSet<SpiderName>) -> Result<Owners> {
        let spiders: Vec<SpiderName> = spiders.into_iter().collect();
        let owners = self.made.owners(&spiders).await?;
        Ok(spiders.into_iter().zip(owners).filter_map(|(spider, owner)| Some((spider, owner?))).collect())
    }

    async fn of_spider(&self, spider: &SpiderName) -> Result<Option<ProjectName>> {
        if let Some(known) = self.of_spiders.get(spider) {
            return Ok(known);
        }
        let owner = self.made.owners(std::slice::from_ref(spider)).await?.pop().flatten();
        self.of_spiders.insert(spider.clone(), owner.clone());
        Ok(owner)
    }

    async fn of_job(&self, crawl: &CrawlRef) -> Result<ProjectName> {
        if let Some(known) = self.of_jobs.get(crawl) {
            return Ok(known);
        }
        let job = if crawl.is_adhoc() { None } else { self.jobs.job(&crawl.id).await? };
        // A crawl without a job may get one.
        let Some(job) = job else { return Ok(ProjectName::default()) };
        self.of_jobs.insert(crawl.clone(), job.new.project.clone());
        Ok(job.new.project)
    }
}
