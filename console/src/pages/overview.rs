//! The overview: the state of the fleet.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use trawl_common::frontier::crawl::CrawlState;

use crate::Console;
use crate::answers::{Crawl, Crawls, Worker, Workers};
use crate::ask::Call;
use crate::charts::Chart;
use crate::page::{Answer, Here, Page, html};
use crate::shown::Number;
use crate::visitor::Visitor;

/// The number of crawls requested: those that run are among the latest.
const LATEST: &str = "1000";
/// The number of crawls shown.
const SHOWN: usize = 10;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    page: Page,
    charts: Vec<Chart>,
    running: Number,
    paused: Number,
    pending: Number,
    failed: Number,
    crawls: Vec<Crawl>,
    workers: Number,
    /// The workers with a problem.
    unwell: Vec<Worker>,
}

pub(crate) async fn show(State(console): State<Arc<Console>>, visitor: Visitor) -> Answer {
    let Crawls { mut crawls, .. } =
        console.ask(&visitor, Call::get(&["crawls"]).with("limit", LATEST)).await?;
    let Workers { workers } = console.ask(&visitor, Call::get(&["workers"])).await?;
    let with = |status| Number(crawls.iter().filter(|crawl| crawl.status == status).count() as u64);
    let (running, paused, pending) =
        (with(CrawlState::Running), with(CrawlState::Paused), with(CrawlState::Pending));
    let failed = Number(crawls.iter().filter(|crawl| !crawl.is_over()).map(|crawl| crawl.failed.0).sum());
    // Open crawls first; the sort keeps the latest first among equals.
    crawls.sort_by_key(|crawl| (crawl.is_over(), crawl.status == CrawlState::Pending));
    crawls.truncate(SHOWN);
    html(&Overview {
        page: Page::new("Overview", Here::Overview, &visitor).live(true),
        charts: console.samples.charts(),
        running,
        paused,
        pending,
        failed,
        crawls,
        workers: Number(workers.len() as u64),
        unwell: workers.into_iter().filter(|worker| !worker.is_well()).collect(),
    })
}
