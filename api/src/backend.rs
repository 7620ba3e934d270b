//! The ports behind the API.

use std::sync::Arc;

use futures::future::BoxFuture;
use trawl_common::crawl_end::left_of;
use trawl_common::explain::Explainer;
use trawl_common::names::CrawlId;
use trawl_common::ports::{
    Control, Engine, HostControl, Items, Jobs, Logs, PageHistories, Projects, Result, Runners, Schedules,
    SpiderStore, Stats, WorkerPorts,
};
use trawl_common::project::{Source, Wanted};
use trawl_common::settings::Settings;
use trawl_common::spider::Spider;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Attempt, NotTried, Ready};

use crate::problem::Problem;
use crate::view::Known;

/// Fetches a page by a spider's rules and the schedules of the fleet, and reads it. It answers within a
/// minute, or a little later.
pub type TryPage = Arc<
    dyn Fn(Spider, Ready, CanonicalUrl) -> BoxFuture<'static, std::result::Result<Attempt, NotTried>>
        + Send
        + Sync,
>;

/// Asks a repository for the commit at the end of a branch.
pub type Tip = Arc<dyn Fn(Source) -> BoxFuture<'static, std::result::Result<Wanted, String>> + Send + Sync>;

/// Connects the ports of a worker, with which runners work.
pub type ForRunners = Arc<dyn Fn() -> BoxFuture<'static, Result<WorkerPorts>> + Send + Sync>;

/// The engine's ports, and other parts that handlers need.
#[derive(Clone)]
pub struct Backend {
    /// Crawls and workers.
    pub stats: Arc<dyn Stats>,
    /// Changes of crawls and dead letters.
    pub control: Arc<dyn Control>,
    /// Submitted crawls.
    pub jobs: Arc<dyn Jobs>,
    /// Deployed spiders.
    pub spider_store: Arc<dyn SpiderStore>,
    /// The state of cron schedules.
    pub schedules: Arc<dyn Schedules>,
    /// The page history.
    pub pages: Arc<dyn PageHistories>,
    /// The extracted items; `None` if they cannot be read again, as outside a fleet.
    pub items: Option<Arc<dyn Items>>,
    /// The fleet's log.
    pub logs: Arc<dyn Logs>,
    /// The tasks that have ended lately.
    pub ended_tasks: Arc<dyn Logs>,
    /// Hosts.
    pub hosts: Arc<dyn HostControl>,
    /// Admits URLs and replays dead letters.
    pub engine: Arc<dyn Engine>,
    /// Tries spiders on pages.
    pub try_page: TryPage,
    /// The machines that may work.
    pub runners: Arc<dyn Runners>,
    /// The projects that people have made.
    pub projects: Arc<dyn Projects>,
    /// Asks the repositories of projects.
    pub tip: Tip,
    /// Connects the ports with which runners work.
    pub for_runners: ForRunners,
    /// The settings, which name hosts and route URLs.
    pub settings: Arc<Settings>,
}

impl Backend {
    /// Returns an explainer of the states of URLs. A state file has no items to read, and no workers that
    /// come and go.
    pub(crate) fn explainer(&self) -> Explainer<'_> {
        let Self { stats, control, hosts, pages, settings, items, .. } = self;
        Explainer {
            stats: &**stats,
            control: &**control,
            hosts: &**hosts,
            pages: &**pages,
            settings,
            is_fleet: items.is_some(),
        }
    }

    /// Returns a crawl; `None` if there is neither such a crawl nor such a job.
    pub(crate) async fn known(&self, id: &CrawlId) -> Result<Option<Known>> {
        // The job first: its crawl ends before it does.
        let job = self.jobs.job(id).await?;
        let stats = self.stats.crawl_stats(id).await?;
        let known = match (job, stats) {
            (Some(job), stats) => Known::of_job(&job, stats),
            (None, Some(stats)) => Known::of_no_job(stats),
            (None, None) => return Ok(None),
        };
        let left = left_of(&*self.stats, &known.stats).await?;
        Ok(Some(known.with(left)))
    }
}

/// Returns the problem of a crawl that is not known.
pub(crate) fn no_crawl(id: &CrawlId) -> Problem {
    Problem::not_found(format_args!("no crawl {id}: GET /api/v1/crawls lists them"))
}
