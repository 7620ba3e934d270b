//! `trawl wait`: until crawls have ended.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout};
use trawl_cli::{
    CrawlArg, EndFlags, Ended, Fail, Global, Outcome, Progress, await_end, counted, items, print_json,
    summary,
};
use trawl_common::duration;
use trawl_common::exit::Exit;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::health::Health;
use trawl_common::jobs::{Job, JobStatus};
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::ports::{JobFilter, JobPage};

use crate::backend::{Backend, Where, failed};

/// How often to look whether the crawl of a job has begun.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long the end of a job is waited for once its crawl has ended: workers look every second or so.
const JOB_END_TIMEOUT: Duration = Duration::from_secs(10);

/// More jobs of a spider are not waited for.
const JOBS: JobPage = JobPage { before: None, max: 10_000 };

/// Which crawls to wait for.
///
/// The exit code is the worst of all: from good to bad, 0, 3, 6, 4, 124, 5, 1, 2. A crawl whose sources were not all
/// read ends with 1.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The crawls: an id, the beginning of it, or `latest`
    #[arg(value_name = "CRAWL", required_unless_present = "spider")]
    crawls: Vec<CrawlArg>,
    /// All crawls of this spider that are not over now, and those of its jobs
    #[arg(long, value_name = "NAME", conflicts_with = "crawls")]
    spider: Option<SpiderName>,
    /// Give up after this time, with exit code 124
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    #[command(flatten)]
    end: EndFlags,
    /// Print each crawl's stats as JSON when it has ended
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::look(&global, &self.place).await?;
        let crawls = match &self.spider {
            Some(spider) => running(&backend, spider).await?,
            None => self.crawls.clone(),
        };
        if let (Some(spider), true) = (&self.spider, crawls.is_empty()) {
            backend.say(format_args!("no crawl of spider {spider} is running"));
        }
        let mut worst = Exit::Ok;
        let line = global.progress();
        let waiting = self.wait(&backend, &crawls, &line, &mut worst);
        match self.timeout {
            None => waiting.await,
            Some(limit) => match timeout(limit, waiting).await {
                Ok(ended) => ended,
                Err(_) => Ok(worst.or_worse(Exit::TimedOut)),
            },
        }
    }

    /// Waits for all of them, and reports each as it ends. An error of one does not end the wait for the others.
    async fn wait(
        &self,
        backend: &Backend,
        crawls: &[CrawlArg],
        progress: &Progress,
        worst: &mut Exit,
    ) -> Outcome {
        let is_one = crawls.len() == 1;
        // Several would overwrite each other.
        let none = Progress::none();
        let each = if is_one { progress } else { &none };
        let mut waiting: FuturesUnordered<_> =
            crawls.iter().map(|crawl| self.end_of(backend, crawl, each)).collect();
        while let Some(ended) = waiting.next().await {
            progress.clear();
            match ended {
                Ok(exit) => *worst = worst.or_worse(exit),
                Err(fail) if is_one => return Err(fail),
                Err(fail) => {
                    anstream::eprintln!("problem: {}", fail.message);
                    *worst = worst.or_worse(fail.exit);
                }
            }
            if !waiting.is_empty() {
                progress.show(format!("{} left", counted(waiting.len() as u64, "crawl")));
            }
        }
        Ok(*worst)
    }

    /// Waits for one crawl, prints how it ended, and returns its exit code.
    async fn end_of(&self, backend: &Backend, crawl: &CrawlArg, progress: &Progress) -> Outcome {
        let crawl = backend.crawl(crawl).await?.crawl;
        let ended = end_of(backend, &crawl, progress).await?;
        if self.json {
            print_json(&ended);
        }
        backend.say(format_args!("crawl {crawl}: {}; {}", summary(&ended), items(&ended)));
        let job = ended_job(backend, &crawl).await?;
        let dead_letters = backend.dead_letters();
        let ended = Ended { stats: &ended, is_of_job: job.is_some(), is_told: false, dead_letters };
        let exit = self.end.judge(&backend.global, &ended);
        match job.as_ref().and_then(Job::problem) {
            Some(problem) => {
                if !self.json {
                    anstream::eprintln!("problem: {problem}");
                }
                Ok(exit.or_worse(Exit::Failed))
            }
            None => Ok(exit),
        }
    }
}

/// The job of a crawl that is over, if it is of one: with its end, unless no worker lives that looks for that.
async fn ended_job(backend: &Backend, crawl: &CrawlId) -> Result<Option<Job>, Fail> {
    let until = Instant::now() + JOB_END_TIMEOUT;
    loop {
        match backend.jobs.job(crawl).await? {
            Some(job) if !job.status().is_over() && Instant::now() < until => sleep(POLL_INTERVAL).await,
            job => return Ok(job),
        }
    }
}

/// The crawls and jobs of a spider that are not over, except the crawl of hand-published URLs, which never is.
async fn running(backend: &Backend, spider: &SpiderName) -> Result<Vec<CrawlArg>, Fail> {
    let crawls = backend.stats.crawls().await?.into_iter();
    let crawls = crawls.filter(|stats| stats.spider == *spider && !stats.status.is_over());
    let filter = JobFilter { spider: Some(spider.clone()), ..JobFilter::default() };
    let jobs = backend.jobs.list(&filter, JOBS).await?.into_iter().filter(|job| !job.status().is_over());
    let mut ids: Vec<CrawlId> = crawls.map(|stats| stats.crawl).chain(jobs.map(|job| job.new.id)).collect();
    ids.retain(|id| !id.is_adhoc());
    ids.sort_unstable();
    ids.dedup();
    Ok(ids.into_iter().map(CrawlArg::Named).collect())
}

/// Waits until a crawl has ended and returns its stats. The crawl of a job may not have begun, and the job may end
/// without one.
async fn end_of(backend: &Backend, id: &CrawlId, progress: &Progress) -> Result<CrawlStats, Fail> {
    let health = Health::default();
    loop {
        let job = health.retry("looking at the job", || backend.jobs.job(id)).await?;
        let stats = health.retry("looking at the crawl", || backend.stats.crawl_stats(id)).await?;
        match (job, stats) {
            (_, Some(_)) | (None, None) => return await_end(&*backend.stats, id, progress).await,
            (Some(job), None) => match job.status() {
                JobStatus::Failed => return Err(failed(&job)),
                JobStatus::Cancelled => return Ok(job.stats_before_it_begins()),
                JobStatus::Pending | JobStatus::Running => progress.show(format!("job {id} is pending")),
                JobStatus::Finished => return await_end(&*backend.stats, id, progress).await,
            },
        }
        sleep(POLL_INTERVAL).await;
    }
}
