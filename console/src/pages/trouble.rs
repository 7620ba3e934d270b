//! Problems of the fleet, each with cause and next step: of crawls that make no progress, that ended badly, and
//! of workers.

use std::collections::HashSet;

use super::overview::has_failed;
use crate::address::address;
use crate::answers::{Crawl, Worker};
use crate::ask::Call;
use crate::failure::Failure;
use crate::shown::{Text, Time};
use crate::visit::Visit;

/// Maximum number of open crawls that are asked what they wait for.
const MAX_CRAWLS: usize = 10;
/// Maximum number of troubles shown.
const MAX_TROUBLES: usize = 8;

/// A crawl or a worker with a problem.
pub(crate) struct Trouble {
    /// The spider, or what it is.
    pub(crate) name: String,
    /// The crawl or worker.
    pub(crate) id: String,
    pub(crate) path: Option<String>,
    /// Its status in a word.
    pub(crate) status: &'static str,
    /// The CSS class of its status.
    pub(crate) style: &'static str,
    pub(crate) since: Option<Time>,
    /// The causes, and the next step.
    pub(crate) words: Vec<Text>,
    /// Further pages: label and address.
    pub(crate) links: Vec<(&'static str, String)>,
}

impl Trouble {
    fn new(crawl: Crawl) -> Option<Self> {
        let (is_over, is_failed) = (crawl.over, has_failed(&crawl));
        // A crawl that has nothing left to do waits for a moment only.
        let waits = if crawl.pending.0 > 0 { crawl.waits } else { Vec::new() };
        let problem = crawl.job.as_ref().and_then(|job| job.problem.clone());
        // A job has among its problems what its crawl yields too little of.
        let is_said =
            |note: &Text| problem.as_ref().is_some_and(|said: &Text| said.as_str().contains(note.as_str()));
        let notes: Vec<Text> = crawl.notes.into_iter().filter(|note| !is_said(note)).collect();
        let mut words: Vec<Text> = problem.into_iter().chain(notes).chain(waits).collect();
        words.dedup();
        let (status, style) = match crawl.status.word(crawl.incomplete, crawl.empty, false, crawl.stalled) {
            _ if is_failed => ("failed", "bad"),
            "running" => ("waits", "warn"),
            "finished" if crawl.failed.0 > crawl.done.0 => ("mostly failed", "bad"),
            "finished" => ("items missing", "warn"),
            status if is_over => (status, "warn"),
            status => (status, if crawl.stalled { "bad" } else { "warn" }),
        };
        let of_crawl = |path| address(path, [("crawl", &crawl.crawl)]);
        let failed = (crawl.failed.0 > 0).then(|| ("Dead letters", of_crawl("/dead-letters")));
        let links = failed.into_iter().chain([("Log", of_crawl("/logs"))]).collect();
        (!words.is_empty()).then(|| Self {
            links,
            path: Some(format!("/crawls/{}", crawl.crawl)),
            name: crawl.spider,
            id: crawl.crawl,
            status,
            style,
            since: Some(crawl.started),
            words,
        })
    }

    fn of_worker(worker: &Worker) -> Self {
        Self {
            name: "Worker".to_owned(),
            id: worker.worker.clone(),
            path: Some("/workers".to_owned()),
            status: "in trouble",
            style: "bad",
            since: None,
            words: vec![worker.health.clone()],
            links: Vec::new(),
        }
    }
}

/// Returns the troubles, the gravest first, and the number of further ones. Of the crawls of a spider that are over,
/// the latest counts.
pub(crate) async fn find(
    visit: &Visit,
    crawls: &[&Crawl],
    workers: &[Worker],
) -> Result<(Vec<Trouble>, u64), Failure> {
    let mut troubles = Vec::new();
    let is_still = |crawl: &&&Crawl| {
        let is_open = !crawl.over && crawl.pending.0 > 0;
        is_open
            && (crawl.stalled || !crawl.notes.is_empty() || !visit.console.samples.is_moving(&crawl.crawl))
    };
    for crawl in crawls.iter().filter(is_still).take(MAX_CRAWLS) {
        troubles.extend(asked(visit, &crawl.crawl).await?.and_then(Trouble::new));
    }
    let mut told = HashSet::new();
    for crawl in crawls.iter().filter(|crawl| crawl.over) {
        let is_latest = told.insert(crawl.spider.as_str());
        if is_latest && (!crawl.notes.is_empty() || has_failed(crawl)) {
            troubles.extend(asked(visit, &crawl.crawl).await?.and_then(Trouble::new));
        }
        if troubles.len() > 2 * MAX_TROUBLES {
            break;
        }
    }
    let is_told = |worker: &&Worker| {
        let health = worker.health.as_str();
        troubles.iter().flat_map(|trouble| &trouble.words).any(|words| words.as_str().contains(health))
    };
    let unwell = workers.iter().filter(|worker| !worker.is_well()).filter(|worker| !is_told(worker));
    let mut all: Vec<Trouble> = unwell.map(Trouble::of_worker).collect();
    all.extend(troubles);
    all.sort_by_key(|trouble| trouble.style != "bad");
    let more = all.len().saturating_sub(MAX_TROUBLES) as u64;
    all.truncate(MAX_TROUBLES);
    Ok((all, more))
}

/// Returns a crawl in full; `None` if it was forgotten meanwhile.
async fn asked(visit: &Visit, id: &str) -> Result<Option<Crawl>, Failure> {
    match visit.ask(Call::get(&["crawls", id])).await {
        Ok(crawl) => Ok(Some(crawl)),
        Err(Failure { status: 404, .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}
