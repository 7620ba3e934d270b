//! The overview: what is amiss, and the state of the fleet.

use askama::Template;
use serde::Deserialize;
use trawl_common::frontier::crawl::{CrawlState, RECENT};
use trawl_common::jobs::JobStatus;
use trawl_common::text::count;
use trawl_common::time::UnixMs;

use super::trouble::{self, Trouble};
use crate::answers::{Crawl, Crawls, Worker, Workers};
use crate::ask::Call;
use crate::charts::{Chart, Span};
use crate::form::Asked;
use crate::page::{Answer, Here, Page, html};
use crate::shown::Number;
use crate::visit::Visit;

/// The number of crawls requested: those that run are among the latest.
const LATEST: &str = "1000";
/// The number of crawls shown.
const MAX_CRAWLS: usize = 10;

/// The choice of charts.
#[derive(Deserialize)]
pub(crate) struct Listing {
    charts: Option<String>,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    page: Page,
    troubles: Vec<Trouble>,
    /// The number of further troubles.
    more: Number,
    span: Span,
    charts: Vec<Chart>,
    running: Number,
    paused: Number,
    pending: Number,
    items: Number,
    failed: Number,
    failed_jobs: Number,
    crawls: Vec<Crawl>,
    workers: Number,
    /// Whether any worker has a problem.
    is_any_unwell: bool,
}

impl Overview {
    /// The sentence that nothing is amiss.
    fn well(&self) -> String {
        let failed = match self.failed.0 {
            0 => String::new(),
            number => format!("; {} failed", count(number)),
        };
        match (self.running.0, self.crawls.is_empty()) {
            (0, true) => "Nothing is amiss: nothing was asked for yet".to_owned(),
            (0, false) => {
                format!(
                    "Nothing is amiss: no crawl runs, and those that ended within a day have read all their sources{failed}"
                )
            }
            _ => format!(
                "Nothing is amiss: all crawls go on, and those that ended within a day have read all their sources{failed}"
            ),
        }
    }

    fn lacks_workers(&self) -> bool {
        self.is_any_unwell || (self.workers.0 == 0 && self.running.0 > 0)
    }
}

pub(crate) async fn show(visit: Visit, Asked(listing): Asked<Listing>) -> Answer {
    let Crawls { mut crawls, .. } = visit.ask(Call::get(&["crawls"]).with("limit", LATEST)).await?;
    let Workers { workers } = visit.ask(Call::get(&["workers"])).await?;
    let with = |status| Number(crawls.iter().filter(|crawl| crawl.status == status).count() as u64);
    let (running, paused, pending) =
        (with(CrawlState::Running), with(CrawlState::Paused), with(CrawlState::Pending));
    // Open crawls first; the sort keeps the latest first among equals.
    crawls.sort_by_key(|crawl| (crawl.over, crawl.status == CrawlState::Pending));
    let now = UnixMs::now();
    let is_recent = |crawl: &&Crawl| crawl.ended_at().is_none_or(|ended| now.since(ended) < RECENT);
    let recent: Vec<&Crawl> = crawls.iter().filter(is_recent).collect();
    let sum = |count: fn(&Crawl) -> Number| Number(recent.iter().map(|crawl| count(crawl).0).sum());
    let (items, failed) = (sum(|crawl| crawl.items), sum(|crawl| crawl.failed));
    let failed_jobs = Number(recent.iter().filter(|crawl| has_failed(crawl)).count() as u64);
    let (troubles, more) = trouble::find(&visit, &recent, &workers).await?;
    let span = Span::named(listing.charts.as_deref());
    let is_any_unwell = workers.iter().any(|worker: &Worker| !worker.is_well());
    crawls.truncate(MAX_CRAWLS);
    html(&Overview {
        page: Page::new("Overview", Here::Overview, &visit).live(true),
        troubles,
        more: Number(more),
        span,
        charts: visit.console.samples.charts(span),
        running,
        paused,
        pending,
        items,
        failed,
        failed_jobs,
        crawls,
        workers: Number(workers.len() as u64),
        is_any_unwell,
    })
}

pub(super) fn has_failed(crawl: &Crawl) -> bool {
    crawl.job.as_ref().is_some_and(|job| job.status == JobStatus::Failed)
}
