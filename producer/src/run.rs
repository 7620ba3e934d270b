//! A run, from the sources to the end of discovery.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use trawl_common::explain;
use trawl_common::frontier::DedupScope;
use trawl_common::health::Health;
use trawl_common::host_schedules::HostSchedules;
use trawl_common::mistake::Mistake;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{self, Hosts, Opening, Ports, SourcesRead, Terms};
use trawl_common::settings::{Politeness, Settings};
use trawl_common::spider::{Scope, Spider, SpiderText};
use trawl_common::web::url::Fingerprint;
use trawl_web::{Fetcher, Threads};

use crate::admission::backlog::Backlog;
use crate::admission::{self, round_robin};
use crate::finding::{Candidate, Finding};
use crate::report::{Progress, Report};
use crate::sources::asking::{Asking, MAX_IN_FLIGHT_TIME, MAX_READERS};
use crate::sources::discovery::{Discovery, Lines};
use crate::sources::page::PageSources;
use crate::sources::revisit::Revisit;
use crate::sources::sorter::Sorter;
use crate::sources::source::Source;
use crate::sources::start::RunStart;

/// Maximum number of parts of sources that wait for admission, which bounds the memory of a run.
const MAX_PARTS_AHEAD: usize = 8;

/// The sources of a run, and the spider that they are for.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The spider that the URLs are for.
    pub spider: Arc<Spider>,
    /// The start of the crawl.
    pub start: RunStart,
    /// Maximum number of URLs to take from the sources.
    pub limit: Option<u64>,
    /// How to treat an HTML page among the sources.
    pub html: Html,
    /// The text of the spider's file for this crawl, if workers may have another file.
    pub text: Option<SpiderText>,
    /// Whether the crawl's id was created for this run: then the crawl was never opened before.
    pub is_new: bool,
}

impl RunPlan {
    /// Identifies its sources: another run with the same sources has the same number.
    pub fn reads(&self) -> u64 {
        let Self { start: RunStart { pages, sources }, limit, .. } = self;
        let sources: Vec<String> = sources.iter().map(Source::identity).collect();
        Fingerprint::from_text(&format!("{pages:?} {sources:?} {limit:?}")).short().cast_unsigned()
    }

    /// Whether no other run can read its sources.
    fn reads_once(&self) -> bool {
        self.start.sources.contains(&Source::Stdin)
    }
}

/// How to treat an HTML page among the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Html {
    /// As an error: it is probably a mistake.
    IsAnError,
    /// As a page to crawl.
    IsThePage,
}

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The HTTP client rejected its settings.
    #[error("[fetch]: {0}")]
    Fetch(#[from] trawl_web::Unusable),
    /// The system cannot start threads.
    #[error("cannot start threads that fetch: {0}")]
    Threads(#[source] std::io::Error),
    /// The spider's patterns are invalid.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Spider(Vec<Mistake>),
    /// A server failed, or another session has the lease.
    #[error(transparent)]
    Port(#[from] ports::Error),
}

/// Reads every source into `crawl`. A source that cannot be read is a problem in the report, and the others continue; a
/// failing server ends the run, and URLs admitted by then are not lost.
///
/// When `stop` is cancelled, the run ends early and leaves discovery open for a later run. Calls that fail from then
/// on, because a server is unavailable or full, are not retried; a run that hangs ends within
/// `worker.shutdown_timeout`.
pub async fn run(
    ports: &Ports,
    settings: Arc<Settings>,
    plan: RunPlan,
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
        result = read_all(ports, settings, plan, crawl, Arc::clone(&progress), stop) => match result {
            Err(RunError::Port(error)) if error.is_temporary() && stop.is_cancelled() => Ok(stopped(&progress)),
            result => result,
        },
        () = too_late => Ok(stopped(&progress)),
    }
}

/// Returns the report of an aborted run. Admitted URLs are not lost, and the lease lapses if it was not released.
fn stopped(progress: &Progress) -> Report {
    Report { counters: progress.snapshot(), stopped: true, ..Report::default() }
}

async fn read_all(
    ports: &Ports,
    settings: Arc<Settings>,
    plan: RunPlan,
    crawl: &CrawlRef,
    progress: Arc<Progress>,
    stop: &CancellationToken,
) -> Result<Report, RunError> {
    let (lease, terms) = (settings.recovery.lost_after, Terms::new(&plan.spider));
    let judging = plan.spider.judging();
    let politeness = plan.spider.politeness.apply(&settings.politeness);
    let health = Arc::new(Health::until(stop.clone()));
    let (text, is_new, reads) = (plan.text.clone(), plan.is_new, Some(plan.reads()));
    let is_once = plan.reads_once();
    let hosts = Arc::clone(&ports.hosts);
    let reading = Reading::new(Arc::clone(&settings), plan, hosts, &health, Some(ports), &progress)?;
    let judging = Some(judging);
    let opening = Opening { crawl: crawl.clone(), terms, text, judging, reads, is_new, lease };
    let session = ports.engine.open(opening, Arc::clone(&health)).await?;
    say_what_stays(crawl, &terms, &session.terms());
    // A page requested before its crawl has started does not count as a page of the crawl.
    let (findings, discovered) = reading.start(stop);
    let backlog = Backlog::new(
        crawl,
        &settings.producer,
        Arc::clone(&ports.stats),
        Arc::clone(&health),
        Arc::clone(&progress),
    );
    let admitted = match backlog.await {
        Ok(backlog) => admission::run(ports, &health, &*session, findings, backlog, &progress, stop).await,
        Err(error) => Err(error),
    };
    if let Err(error) = admitted {
        if error.is_temporary() && stop.is_cancelled() {
            session.abandon().await?;
        }
        return Err(error.into());
    }
    let report = report(discovered, &progress, &politeness, stop).await;
    let reader = WorkerId::of_this_machine();
    if let Err(error) = explain::write_unread(&*ports.logs, &reader, crawl, &report.problems).await {
        // Nothing else depends on the log.
        warn!(crawl = %crawl.id, %error, "the log does not have which sources were not read");
    }
    if report.stopped {
        session.abandon().await?;
    } else {
        session.close_read(Some(SourcesRead { is_once, ..report.sources_read() })).await?;
    }
    Ok(report)
}

/// Warns about requested terms that a crawl that has started cannot adopt: its dedup scope was determined by the first
/// opening.
fn say_what_stays(CrawlRef { id, .. }: &CrawlRef, asked: &Terms, is: &Terms) {
    if asked.recrawl != is.recrawl {
        let said = |recrawl| format!("recrawl = {recrawl} (dedup = {})", DedupScope::from(recrawl));
        let (asked, is) = (said(asked.recrawl), said(is.recrawl));
        warn!(
            crawl = %id,
            "{asked} has no effect: the crawl goes on with {is}, as it began; let it end, or cancel it, and begin another"
        );
    }
}

/// Reads every source and passes each finding to `show`, without using any of trawl's servers: `hosts` keeps schedules
/// of this run alone.
pub async fn preview(
    settings: Arc<Settings>,
    hosts: Arc<dyn Hosts>,
    plan: RunPlan,
    stop: &CancellationToken,
    mut show: impl FnMut(&Finding),
) -> Result<Report, RunError> {
    let progress = Arc::new(Progress::default());
    let politeness = plan.spider.politeness.apply(&settings.politeness);
    let health = Arc::new(Health::until(stop.clone()));
    let reading = Reading::new(Arc::clone(&settings), plan, hosts, &health, None, &progress)?;
    let (mut findings, discovered) = reading.start(stop);
    while let Some(bundle) = findings.recv().await {
        for finding in &bundle {
            show(finding);
            match finding {
                Finding::Page(Candidate { page, ttl, .. }) => {
                    progress.found(1);
                    progress.waiting(page.work.page().map(|url| (url, *ttl)).into_iter());
                }
                Finding::Invalid { .. } => progress.invalid(1),
            }
        }
    }
    Ok(report(discovered, &progress, &politeness, stop).await)
}

type Discovered = tokio::task::JoinHandle<(Vec<String>, Vec<String>)>;

/// Returns the result of a run, once everything is read.
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

/// Returns the report of a reader that has failed, so that the sources do not count as read.
fn broken_off(error: tokio::task::JoinError) -> (Vec<String>, Vec<String>) {
    (vec![format!("reading broke off, by a fault of this program: {error}")], Vec::new())
}

/// Everything needed to read sources, checked.
struct Reading {
    discovery: Discovery,
    start: RunStart,
    schedules: HostSchedules,
    limit: Option<u64>,
}

impl Reading {
    /// Creates a reading that uses the schedules of `hosts`, and the other ports if there are any.
    fn new(
        settings: Arc<Settings>,
        plan: RunPlan,
        hosts: Arc<dyn Hosts>,
        health: &Arc<Health>,
        ports: Option<&Ports>,
        progress: &Arc<Progress>,
    ) -> Result<Self, RunError> {
        let sorter = Sorter::new(Arc::clone(&settings), Arc::clone(&plan.spider), Arc::clone(progress));
        let revisits =
            plan.spider.follow.is_some() && plan.spider.dedup.is_some_and(DedupScope::is_revisiting);
        let scope = Scope::new(&plan.spider).map_err(RunError::Spider)?;
        let revisit = ports.filter(|_| revisits).map(|ports| Revisit {
            pages: Arc::clone(&ports.pages),
            health: Arc::clone(health),
            spider: plan.spider.name.clone(),
            scope,
            sorter: sorter.clone(),
        });
        let threads = Threads::start(MAX_READERS).map_err(RunError::Threads)?;
        let fetcher = Arc::new(Fetcher::from_spider(&plan.spider, &settings.fetch)?.on(&threads)?);
        // No request holds a place for longer.
        let lapse = settings.fetch.timeout + MAX_IN_FLIGHT_TIME;
        let schedules = HostSchedules::new(hosts, Arc::clone(health), lapse, &settings);
        let pages = ports.filter(|_| plan.html == Html::IsThePage).map(|ports| {
            let (fetcher, spider) = (Arc::clone(&fetcher), Arc::clone(&plan.spider));
            Arc::new(PageSources::new(
                Arc::clone(&ports.cache),
                fetcher,
                schedules.clone(),
                spider,
                Arc::clone(&settings),
            ))
        });
        let politeness = plan.spider.politeness.apply(&settings.politeness);
        let asking = Asking::new(
            fetcher,
            schedules.clone(),
            politeness,
            Arc::clone(progress),
            settings.producer.timeout,
            plan.spider.retry.apply(&settings.retry),
        );
        let discovery = Discovery {
            pages,
            asking: Arc::new(asking),
            sorter,
            revisit,
            progress: Arc::clone(progress),
            problems: Lines::default(),
            empty: Lines::default(),
        };
        Ok(Self { discovery, start: plan.start, schedules, limit: plan.limit })
    }

    /// Starts to read; the findings arrive in parts, at most as many as the limit allows.
    fn start(self, stop: &CancellationToken) -> (mpsc::Receiver<Vec<Finding>>, Discovered) {
        let Self { discovery, start, schedules, limit } = self;
        let (send, read) = mpsc::channel(MAX_PARTS_AHEAD);
        let (pass, findings) = mpsc::channel(1);
        tokio::spawn(round_robin::run(read, pass, limit.unwrap_or(u64::MAX), stop.clone()));
        let discovered = tokio::spawn(async move { schedules.freeing(discovery.run(start, send)).await });
        (findings, discovered)
    }
}
