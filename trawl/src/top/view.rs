//! The data of `trawl top`, read from the ports.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};
use trawl_cli::Fail;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::CrawlId;
use trawl_common::ports::{HostState, LaneState, WorkerState};
use trawl_common::time::{UnixMs, as_rfc_3339};

use crate::backend::Backend;

/// Number of the latest crawls that are over to show.
const MAX_ENDED: usize = 3;

/// A snapshot of all activity.
#[derive(Clone, Debug, Serialize)]
pub(super) struct View {
    /// The time of the snapshot.
    #[serde(with = "as_rfc_3339")]
    pub(super) at: UnixMs,
    /// The number of pages done per second in all crawls.
    pub(super) pages_per_second: f64,
    /// The crawls that are not over, and the latest of the others.
    pub(super) crawls: Vec<CrawlView>,
    pub(super) workers: Vec<WorkerState>,
    pub(super) lanes: Vec<LaneState>,
    /// The hosts that are blocked or in a back-off.
    pub(super) hosts: Vec<HostView>,
    /// Current problems.
    pub(super) notes: Vec<String>,
}

/// A crawl with its pace.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CrawlView {
    #[serde(flatten)]
    pub(super) stats: CrawlStats,
    pub(super) pages_per_second: f64,
}

/// A host that is blocked or in a back-off.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HostView {
    pub(super) host: String,
    /// The end of its back-off; `None` while it is blocked.
    #[serde(serialize_with = "optional")]
    pub(super) until: Option<UnixMs>,
    /// The status of its response.
    pub(super) status: Option<u16>,
}

fn optional<S: Serializer>(until: &Option<UnixMs>, to: S) -> Result<S::Ok, S::Error> {
    until.map(|until| until.to_string()).serialize(to)
}

impl View {
    /// Takes a snapshot. If only the broker is unavailable, only the lanes are missing.
    pub(super) async fn ask(backend: &Backend) -> Result<Self, Fail> {
        let now = UnixMs::now();
        let (mut over, mut crawls) = (0, backend.stats.crawls().await?);
        crawls.retain(|stats| {
            over += usize::from(stats.status.is_over());
            !stats.status.is_over() || over <= MAX_ENDED
        });
        crawls.sort_by_key(|stats| stats.status.is_over());
        let workers = backend.stats.workers().await?;
        let pages = backend.pages();
        let mut notes = backend.explainer(&*pages).workers().await?;
        let lanes = backend.stats.lanes().await.unwrap_or_else(|error| {
            notes.push(format!("the lanes are not known: {error}"));
            Vec::new()
        });
        let hosts = backend.hosts.hosts().await?;
        Ok(Self {
            at: now,
            pages_per_second: total(workers.iter().map(|worker| worker.pages_per_second)),
            crawls: crawls
                .into_iter()
                .map(|stats| CrawlView { pages_per_second: trawl_cli::pages_per_second(&stats), stats })
                .collect(),
            workers,
            lanes,
            hosts: hosts.iter().filter_map(|host| left_alone(host, now)).collect(),
            notes,
        })
    }

    /// Computes each rate from the URLs that have ended since `before`, which was taken `ago`.
    pub(super) fn pace_since(&mut self, before: &Self, ago: Duration) {
        let seconds = ago.as_secs_f64().max(0.001);
        let done: BTreeMap<&CrawlId, &CrawlView> =
            before.crawls.iter().map(|crawl| (&crawl.stats.crawl, crawl)).collect();
        for crawl in self.crawls.iter_mut().filter(|crawl| !crawl.stats.status.is_over()) {
            if let Some(known) = done.get(&crawl.stats.crawl) {
                let more = crawl.stats.counts.handled().saturating_sub(known.stats.counts.handled());
                // The interval is short, so the rate is averaged with the previous one.
                crawl.pages_per_second = (more as f64 / seconds + known.pages_per_second) / 2.0;
            }
        }
        // A state file that another process has open has no workers to report the pace.
        if self.workers.is_empty() {
            let running = self.crawls.iter().filter(|crawl| !crawl.stats.status.is_over());
            self.pages_per_second = total(running.map(|crawl| crawl.pages_per_second));
        }
    }
}

fn left_alone(host: &HostState, now: UnixMs) -> Option<HostView> {
    let backoff = host.backoff.filter(|backoff| backoff.until > now);
    (host.blocked.is_some() || backoff.is_some()).then(|| HostView {
        host: host.key.to_string(),
        until: backoff.filter(|_| host.blocked.is_none()).map(|backoff| backoff.until),
        status: backoff.map(|backoff| backoff.status).filter(|status| *status > 0),
    })
}

/// Adds paces. Unlike `sum`, returns `0.0` rather than `-0.0` for none.
fn total(paces: impl Iterator<Item = f64>) -> f64 {
    paces.fold(0.0, |sum, pace| sum + pace)
}
