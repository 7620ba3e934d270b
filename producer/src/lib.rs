//! trawl's producer: reads sitemaps and lists, and puts each URL that is new into its queue.
//!
//! One run, from top to bottom:
//!
//! 1. [`run`] opens the crawl and takes a lease of its spider, so that all who read sources at once do so for one crawl;
//! 2. `discovery` reads the sources, and the sitemaps that they name, with [`sitemap`];
//! 3. `read` makes each entry a canonical URL and routes it, and `mix` makes bundles of them, host by host in turn;
//! 4. `admission` leaves out what is not `due` again, and admits the rest in bundles, as long as the `backlog` has room, publishes what is new, and confirms it;
//! 5. the lease is given back: with the last one, discovery ends.

mod admission;
mod asking;
mod backlog;
#[cfg(feature = "cli")]
pub mod cli;
mod discovery;
mod download;
mod due;
mod itinerary;
mod lease;
mod mix;
mod page;
mod read;
mod report;
mod revisit;
#[cfg(feature = "cli")]
mod running;
mod source;
mod start;
mod workload;

pub mod sitemap;

use std::sync::Arc;
use std::time::Duration;

use asking::{Asking, PLACE_KEPT_FOR};
use backlog::Backlog;
use discovery::{Discovery, Lines};
use page::PageSources;
use read::Sorter;
pub use report::{Counters, Progress, Report};
use revisit::Revisit;
pub use source::{InvalidSource, Source};
pub use start::{NoStart, Start};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use trawl_common::ceiling::Ceiling;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{self, Hosts, NewUrl, Ports, Terms};
use trawl_common::settings::{Politeness, Settings};
use trawl_common::spider::{Mistake, Scope, Spider};
use trawl_common::time::UnixMs;
use trawl_common::turns::Turns;
use trawl_web::Fetcher;

/// Parts of sources that wait for the admission: bounds the memory of a run.
const PARTS_AHEAD: usize = 8;

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct Job {
    /// The spider that the URLs are for.
    pub spider: Arc<Spider>,
    /// Where it begins.
    pub start: Start,
    /// The most URLs to take from them.
    pub limit: Option<u64>,
    /// What an HTML page among the sources means.
    pub html: Html,
    /// Whether the crawl's id was made for this run: then nobody has opened it before.
    pub is_new: bool,
}

/// What an HTML page among the sources means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Html {
    /// Likely a mistake: an error that says so.
    IsAnError,
    /// The page itself is what to crawl.
    IsThePage,
}

/// One entry of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A URL.
    Page(Candidate),
    /// Something that is no URL.
    Invalid {
        /// What stands there, printable.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A URL to admit, unless it is not due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The URL, routed.
    pub page: NewUrl,
    /// How long it may live.
    pub ttl: Option<Duration>,
    /// When it changed at the latest, if its source says so.
    pub modified: Option<UnixMs>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The HTTP client refused its settings.
    #[error("[fetch]: {0}")]
    Fetch(#[from] trawl_web::Unusable),
    /// The spider's patterns cannot be used.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Spider(Vec<Mistake>),
    /// A server failed, or the lease is someone else's.
    #[error(transparent)]
    Port(#[from] ports::Error),
}

/// Reads every source into `crawl`. A source that cannot be read is a problem in the report, and the others
/// go on; a server that fails ends the run, and what was admitted by then is not lost.
///
/// When `stop` is cancelled the run ends early and leaves discovery open, so that a later run continues it. What fails then, because a
/// server is away or full, is not tried again; a run that hangs ends within `worker.shutdown_timeout`.
pub async fn run(
    ports: &Ports,
    settings: Arc<Settings>,
    job: Job,
    crawl: &CrawlRef,
    progress: Arc<Progress>,
    stop: &CancellationToken,
) -> Result<Report, RunError> {
    let grace = settings.worker.shutdown_timeout;
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        result = read_all(ports, settings, job, crawl, Arc::clone(&progress), stop) => match result {
            Err(RunError::Port(error)) if error.is_temporary() && stop.is_cancelled() => Ok(stopped(&progress)),
            result => result,
        },
        () = too_late => Ok(stopped(&progress)),
    }
}

/// A run that is broken off. What was admitted by now is not lost, and the lease lapses if it was not given back.
fn stopped(progress: &Progress) -> Report {
    Report { counters: progress.snapshot(), stopped: true, ..Report::default() }
}

async fn read_all(
    ports: &Ports,
    settings: Arc<Settings>,
    job: Job,
    crawl: &CrawlRef,
    progress: Arc<Progress>,
    stop: &CancellationToken,
) -> Result<Report, RunError> {
    let (ttl, terms) = (settings.recovery.patience, Terms::of(&job.spider));
    let politeness = settings.politeness.of(&job.spider.politeness);
    let health = Arc::new(Health::until(stop.clone()));
    let is_new = job.is_new;
    let hosts = Arc::clone(&ports.hosts);
    let (findings, discovered) =
        discover(Arc::clone(&settings), job, hosts, &health, Some(ports), &progress, stop)?;
    let lease =
        lease::Lease::take(Arc::clone(&ports.frontier), Arc::clone(&health), crawl, terms, ttl, is_new)
            .await?;
    let backlog = Backlog::of(
        crawl,
        &settings.producer,
        Arc::clone(&ports.frontier),
        Arc::clone(&health),
        Arc::clone(&progress),
    );
    let admitted = match backlog.await {
        Ok(backlog) => admission::run(ports, &health, &lease, findings, backlog, &progress, stop).await,
        Err(error) => Err(error),
    };
    if let Err(error) = admitted {
        if error.is_temporary() && stop.is_cancelled() {
            lease.abandon().await?;
        }
        return Err(error.into());
    }
    let report = report(discovered, &progress, &politeness, stop).await;
    if report.stopped {
        lease.abandon().await?;
    } else {
        lease.close().await?;
    }
    Ok(report)
}

/// Reads every source and shows each finding to `show`, without touching any server of trawl's: `hosts` keeps schedules of this
/// run alone.
pub async fn preview(
    settings: Arc<Settings>,
    hosts: Arc<dyn Hosts>,
    job: Job,
    stop: &CancellationToken,
    mut show: impl FnMut(&Finding),
) -> Result<Report, RunError> {
    let progress = Arc::new(Progress::default());
    let politeness = settings.politeness.of(&job.spider.politeness);
    let health = Arc::new(Health::until(stop.clone()));
    let (mut findings, discovered) =
        discover(Arc::clone(&settings), job, hosts, &health, None, &progress, stop)?;
    while let Some(bundle) = findings.recv().await {
        for finding in &bundle {
            show(finding);
            match finding {
                Finding::Page(Candidate { page, ttl, .. }) => {
                    progress.found(1);
                    progress.waiting([(&page.url, *ttl)].into_iter());
                }
                Finding::Invalid { .. } => progress.invalid(1),
            }
        }
    }
    Ok(report(discovered, &progress, &politeness, stop).await)
}

type Discovered = tokio::task::JoinHandle<(Vec<String>, Vec<String>)>;

/// What a run comes to, once all is read.
async fn report(
    discovered: Discovered,
    progress: &Progress,
    politeness: &Politeness,
    stop: &CancellationToken,
) -> Report {
    let (problems, empty) = discovered.await.unwrap_or_else(broken_off);
    let (overloads, stopped) = (progress.overloads(politeness), stop.is_cancelled());
    Report { counters: progress.snapshot(), problems, empty, overloads, stopped }
}

/// What is reported when the reader itself has failed: nobody may take the sources for read.
fn broken_off(error: tokio::task::JoinError) -> (Vec<String>, Vec<String>) {
    (vec![format!("reading broke off, by a fault of this program: {error}")], Vec::new())
}

/// Starts to read, by the schedules that `hosts` keeps, and with the other ports where there are any; the findings come in
/// bundles, at most `job.limit` of them.
fn discover(
    settings: Arc<Settings>,
    job: Job,
    hosts: Arc<dyn Hosts>,
    health: &Arc<Health>,
    ports: Option<&Ports>,
    progress: &Arc<Progress>,
    stop: &CancellationToken,
) -> Result<(mpsc::Receiver<Vec<Finding>>, Discovered), RunError> {
    let sorter = Sorter::new(Arc::clone(&settings), Arc::clone(&job.spider), Arc::clone(progress));
    let revisits = job.spider.follow.is_some() && !job.spider.recrawl.is_never();
    let scope = Scope::of(&job.spider).map_err(RunError::Spider)?;
    let revisit = ports.filter(|_| revisits).map(|ports| Revisit {
        pages: Arc::clone(&ports.pages),
        health: Arc::clone(health),
        spider: job.spider.name.clone(),
        scope,
        sorter: sorter.clone(),
    });
    let fetcher = Arc::new(Fetcher::of(&job.spider, &settings.fetch)?);
    // Nobody keeps a place for longer.
    let lapse = settings.fetch.timeout + PLACE_KEPT_FOR;
    let ceiling = Arc::new(Ceiling::of(settings.fetch.max_rate));
    let turns = Turns { hosts, health: Arc::clone(health), places: Arc::default(), lapse, ceiling };
    let pages = ports.filter(|_| job.html == Html::IsThePage).map(|ports| {
        let (fetcher, spider) = (Arc::clone(&fetcher), Arc::clone(&job.spider));
        Arc::new(PageSources::new(ports.clone(), fetcher, turns.clone(), spider, Arc::clone(&settings)))
    });
    let politeness = settings.politeness.of(&job.spider.politeness);
    let asking =
        Asking::new(fetcher, turns.clone(), politeness, Arc::clone(progress), settings.producer.timeout);
    let discovery = Discovery {
        pages,
        asking: Arc::new(asking),
        sorter,
        revisit,
        progress: Arc::clone(progress),
        problems: Lines::default(),
        empty: Lines::default(),
    };
    let (send, read) = mpsc::channel(PARTS_AHEAD);
    let (pass, findings) = mpsc::channel(1);
    tokio::spawn(mix::run(read, pass, job.limit.unwrap_or(u64::MAX), stop.clone()));
    let discovered = tokio::spawn(async move { turns.freeing(discovery.run(job.start, send)).await });
    Ok((findings, discovered))
}
