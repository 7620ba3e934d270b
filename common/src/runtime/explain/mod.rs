//! Explains in words why a crawl makes no progress, and where a URL is: shared by commands, the HTTP API and the
//! console.
//!
//! Facts are read from the ports first. The words are a function of the facts alone.

mod crawl;
mod host;
mod sources;
mod url;
mod url_words;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::health;
use crate::names::{SpiderName, WorkerId};
use crate::ports::{Control, HostControl, PageHistories, Result, Stats, Vanished, WorkerState};
use crate::settings::Settings;
use crate::text::counted;
use crate::time::UnixMs;

pub use self::crawl::delays;
pub use self::host::not_asked;
pub use self::sources::{unread, write_unread};
pub use self::url::{InCrawl, OfSpider, PageOutcome, RobotsVerdict, UrlReport};
pub use crate::frontier::notes::{
    KINDS, amiss, empty, ended_without_items, incomplete, missing_fields, mostly_failed, notes, nothing_new,
    without_fields,
};
pub use crate::frontier::unmet::unmet;

/// Reads an engine's state, and describes it in words.
#[derive(Clone, Copy)]
pub struct Explainer<'a> {
    /// Crawls and workers.
    pub stats: &'a dyn Stats,
    /// Dead letters.
    pub control: &'a dyn Control,
    /// Hosts.
    pub hosts: &'a dyn HostControl,
    /// The page history.
    pub pages: &'a dyn PageHistories,
    /// The settings of URLs and politeness.
    pub settings: &'a Settings,
    /// Whether URLs are fetched by a fleet of workers; otherwise by the one process that has the state file open.
    pub is_fleet: bool,
}

/// The workers, running or vanished.
#[derive(Clone, Debug, Default)]
struct Workers {
    living: Vec<WorkerState>,
    vanished: Vec<Vanished>,
    is_fleet: bool,
    /// How long the URLs of a vanished worker remain its own.
    lease: Duration,
}

impl Workers {
    async fn ask(explainer: &Explainer<'_>) -> Result<Self> {
        Ok(Self {
            living: explainer.stats.workers().await?,
            vanished: explainer.stats.vanished().await?,
            is_fleet: explainer.is_fleet,
            lease: explainer.settings.recovery.lost_after / 4,
        })
    }

    /// Explains why no worker fetches, if none does.
    fn nobody(&self) -> Option<String> {
        match &self.living[..] {
            [] if self.is_fleet => Some("no worker lives: start one with `worker`".to_owned()),
            [] => None,
            all if all.iter().all(|worker| worker.draining) => {
                Some("every worker that lives was asked to end: start another with `worker`".to_owned())
            }
            _ => None,
        }
    }

    /// Reports that a holder of URLs is no longer running; `None` if it is.
    fn loss(&self, holder: &WorkerId) -> Option<String> {
        let Vanished { seen, .. } = self.vanished.iter().find(|vanished| vanished.worker == *holder)?;
        let lease = humantime::format_duration(self.lease);
        Some(format!(
            "the worker {holder} has said nothing since {seen}: others take over what it held within {lease}"
        ))
    }

    /// Reports that the program of a spider is the limit.
    fn behind(&self, spider: &SpiderName) -> Option<String> {
        let waiting: u64 = self.living.iter().filter_map(|worker| worker.behind.get(spider)).sum();
        (waiting > 0).then(|| {
            format!(
                "{waiting} pages or tasks wait for the spider's program, which is the limit: set `concurrency` under [handler], or start \
                 more workers"
            )
        })
    }

    /// Reports that a worker is gone without having signed off.
    fn vanished(&self, Vanished { worker, seen, in_flight }: &Vanished, now: UnixMs) -> String {
        let held = match in_flight {
            0 => "held nothing".to_owned(),
            urls if self.living.is_empty() || now < seen.plus(2 * self.lease) => {
                format!("held {}, which others take over", counted(*urls, "URL"))
            }
            urls => format!("held {} then, which others have taken over", counted(*urls, "URL")),
        };
        format!("the worker {worker} vanished without a word: it last spoke at {seen}, and {held}")
    }

    /// Returns what keeps workers from working for a spider, as they say: not what keeps them from working for another
    /// alone, and, if the lack of the spider is said already, not that again.
    fn troubles(&self, spider: &SpiderName, is_lack_said: bool) -> Vec<String> {
        let of_all = |worker: &WorkerState| {
            let is_general = !worker.is_well() && health::spider_of(&worker.health).is_none();
            is_general.then(|| worker.health.clone())
        };
        words(&self.living, spider, is_lack_said, |worker| {
            own_trouble(worker, spider).or_else(|| of_all(worker))
        })
    }
}

/// Says that no worker can work for a spider, with the reason if they report one.
fn lack(living: &[WorkerState], spider: &SpiderName) -> Option<String> {
    let mut working = living.iter().filter(|worker| !worker.draining);
    let why = working.clone().find_map(|worker| worker.lacks.get(spider))?;
    let is_everywhere = working.all(|worker| worker.lacks.contains_key(spider));
    is_everywhere.then(|| format!("no worker can work for the spider {spider}: {why}"))
}

/// Says of each trouble, which `of` returns of a worker, which workers have it.
fn words(
    living: &[WorkerState],
    spider: &SpiderName,
    is_lack_said: bool,
    of: impl Fn(&WorkerState) -> Option<String>,
) -> Vec<String> {
    let mut all: BTreeMap<String, Vec<&WorkerId>> = BTreeMap::new();
    for worker in living {
        let is_said = |trouble: &String| {
            is_lack_said && worker.lacks.get(spider).is_some_and(|why| trouble.contains(&**why))
        };
        if let Some(trouble) = of(worker).filter(|trouble| !is_said(trouble)) {
            all.entry(trouble).or_default().push(&worker.worker);
        }
    }
    let words = all.into_iter().map(|(trouble, workers)| match workers[..] {
        [worker] => format!("the worker {worker} goes on by itself once this is mended: {trouble}"),
        _ => format!("{} workers go on by themselves once this is mended: {trouble}", workers.len()),
    });
    words.collect()
}

/// Returns the trouble that a worker has with this spider alone.
fn own_trouble(worker: &WorkerState, spider: &SpiderName) -> Option<String> {
    let by_health = || health::spider_of(&worker.health).filter(|of| of == spider);
    // An older worker has one trouble at most.
    worker.troubles.get(spider).cloned().or_else(|| by_health().map(|_| worker.health.clone()))
}

/// Returns what keeps workers from a spider's work alone: a program that none of them can start, or a sink that is
/// away.
pub fn spider_troubles(living: &[WorkerState], spider: &SpiderName) -> Vec<String> {
    let lack = lack(living, spider);
    let troubles = words(living, spider, lack.is_some(), |worker| own_trouble(worker, spider));
    lack.into_iter().chain(troubles).collect()
}

impl Explainer<'_> {
    /// Returns the problems of the workers as a whole: that none is running, the spiders that none can work for, and
    /// the workers that have vanished.
    pub async fn workers(&self) -> Result<Vec<String>> {
        let workers = Workers::ask(self).await?;
        let lacking = workers.living.iter().flat_map(|worker| worker.lacks.keys());
        let lacking =
            lacking.collect::<BTreeSet<_>>().into_iter().filter_map(|spider| lack(&workers.living, spider));
        let vanished = workers.vanished.iter().map(|vanished| workers.vanished(vanished, now()));
        let outdated = outdated(&workers.living);
        Ok(workers.nobody().into_iter().chain(lacking).chain(vanished).chain(outdated).collect())
    }
}

/// Returns a sentence for each spider's file that cannot be used, so that workers go by an older version of it.
pub fn outdated(living: &[WorkerState]) -> Vec<String> {
    let mut files: BTreeMap<(&SpiderName, &str), Vec<&str>> = BTreeMap::new();
    for WorkerState { worker, outdated, .. } in living {
        for (spider, why) in outdated {
            files.entry((spider, why)).or_default().push(worker.as_str());
        }
    }
    let words = files.into_iter().map(|((spider, why), workers)| {
        let number = workers.len() as u64;
        let (who, goes) = match workers[..] {
            [worker] => (format!("the worker {worker}"), "goes"),
            _ => (counted(number, "worker"), "go"),
        };
        format!("{who} {goes} by an older version of the spider {spider}: its file cannot be used: {why}")
    });
    words.collect()
}

/// Returns the first of many reasons, and the number of further ones.
fn shortened(mut all: Vec<String>, most: usize, what: &str) -> Vec<String> {
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    if more > 0 {
        all.push(format!("{more} more {what}"));
    }
    all
}

/// Returns the current time of this machine.
fn now() -> UnixMs {
    UnixMs::now()
}
