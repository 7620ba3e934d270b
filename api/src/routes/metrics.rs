//! Metrics of the fleet for Prometheus. Metrics of a single worker are served by the worker itself (`[metrics]
//! listen`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use metrics::{Unit, describe_gauge, gauge, with_local_recorder};
use metrics_exporter_prometheus::PrometheusBuilder;
use strum::VariantNames;
use tokio::time::Instant;
use trawl_common::explain;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats, HostStats, RECENT};
use trawl_common::politeness::sizing::{Demand, workers_of_use};
use trawl_common::ports::{self, HostState, JobCounts, LaneState};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;

use crate::problem::Problem;
use crate::{Api, Backend};

/// Prometheus' text format, version 0.0.4.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How long a response is reused, so that frequent requests cost nothing.
const CACHE_TTL: Duration = Duration::from_secs(5);
/// Maximum number of running crawls whose hosts are examined: those with the most waiting URLs.
const MAX_CRAWLS: usize = 20;
/// Maximum number of hosts examined per crawl: those with the most URLs.
const MAX_HOSTS: usize = 1_000;
/// Assumed duration of a request to an unknown host.
const ASSUMED_LATENCY: Duration = Duration::from_millis(500);

/// The fleet in numbers, as Prometheus reads them
#[utoipa::path(
    get, path = "/metrics", tag = "meta", security(("token" = [])),
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn show_metrics(State(api): State<Arc<Api>>) -> Result<impl IntoResponse, Problem> {
    let mut latest = api.metrics.lock().await;
    let text = match &*latest {
        Some((made, text)) if made.elapsed() < CACHE_TTL => text.clone(),
        _ => {
            let text = render(&Numbers::new(&api.backend).await?);
            *latest = Some((Instant::now(), text.clone()));
            text
        }
    };
    Ok(([(header::CONTENT_TYPE, TEXT)], text))
}

/// The measured numbers.
struct Numbers {
    /// The number of crawls by status.
    crawls: BTreeMap<&'static str, u64>,
    pending: u64,
    stalled: u64,
    /// The number of crawls by what is amiss with them.
    amiss: BTreeMap<&'static str, u64>,
    workers: u64,
    /// The number of workers that could be kept busy.
    of_use: u64,
    in_flight: u64,
    pages_per_second: f64,
    troubled: u64,
    hosts: u64,
    backing_off: u64,
    blocked: u64,
    jobs: JobCounts,
    would_help: u64,
    /// `None` while the broker is unavailable.
    lanes: Vec<LaneState>,
}

impl Numbers {
    async fn new(backend: &Backend) -> Result<Self, Problem> {
        let all = backend.stats.crawls().await?;
        let hosts = backend.hosts.hosts().await?;
        let workers = backend.stats.workers().await?;
        let lanes = unless_away(backend.stats.lanes().await)?;
        let jobs = backend.jobs.counts().await?;
        let mut crawls: BTreeMap<_, u64> = CrawlState::VARIANTS.iter().map(|status| (*status, 0)).collect();
        all.iter().for_each(|stats| *crawls.entry(stats.status.as_str()).or_default() += 1);
        let now = UnixMs::now();
        let count = |is: &dyn Fn(&HostState) -> bool| hosts.iter().filter(|host| is(host)).count() as u64;
        let of_use =
            workers_of_use(demands(backend, &all, &hosts).await?, backend.settings.worker.concurrency);
        Ok(Self {
            crawls,
            pending: all.iter().map(|stats| stats.pending).sum(),
            stalled: all.iter().filter(|stats| stats.stalled).count() as u64,
            amiss: amiss(&all, now),
            workers: workers.len() as u64,
            of_use,
            in_flight: workers.iter().map(|worker| worker.in_flight).sum(),
            pages_per_second: workers.iter().map(|worker| worker.pages_per_second).sum(),
            troubled: workers.iter().filter(|worker| !worker.is_well()).count() as u64,
            hosts: hosts.len() as u64,
            backing_off: count(&|host| host.backoff.is_some_and(|backoff| backoff.until > now)),
            blocked: count(&|host| host.blocked.is_some()),
            jobs,
            would_help: of_use.saturating_sub(workers.len() as u64),
            lanes,
        })
    }
}

/// Returns the number of crawls by what is amiss with them, of those that run, and of the latest of each spider that
/// ended lately. `all` has the newest first.
fn amiss(all: &[CrawlStats], now: UnixMs) -> BTreeMap<&'static str, u64> {
    let mut amiss: BTreeMap<_, u64> = explain::KINDS.iter().map(|kind| (*kind, 0)).collect();
    let mut spiders = BTreeSet::new();
    for stats in all {
        let is_old = || now.since(stats.period().to) > RECENT;
        if stats.status.is_over() && (!spiders.insert(&stats.spider) || is_old()) {
            continue;
        }
        for (kind, _) in explain::amiss(stats) {
            *amiss.entry(kind).or_default() += 1;
        }
    }
    amiss
}

/// Returns the lanes; `None` while the broker is unavailable, because everything else is known without it.
fn unless_away(lanes: ports::Result<Vec<LaneState>>) -> ports::Result<Vec<LaneState>> {
    lanes.or_else(|error| if error.is_temporary() { Ok(Vec::new()) } else { Err(error) })
}

/// Returns the demand for requests to the hosts of running crawls.
async fn demands(
    backend: &Backend,
    crawls: &[CrawlStats],
    hosts: &[HostState],
) -> Result<Vec<Demand>, Problem> {
    let mut running: Vec<_> = crawls.iter().filter(|stats| stats.status == CrawlState::Running).collect();
    running.sort_by_key(|stats| std::cmp::Reverse(stats.pending));
    let mut pending: BTreeMap<HostKey, Demand> = BTreeMap::new();
    for stats in running.into_iter().take(MAX_CRAWLS) {
        for host in backend.stats.hosts(&stats.crawl_ref(), MAX_HOSTS).await? {
            let Some((key, demand)) = demand(backend, &host) else { continue };
            pending.entry(key).or_insert(Demand { pending: 0, ..demand }).pending += demand.pending;
        }
    }
    let now = UnixMs::now();
    for HostState { key, interval, latency, backoff, blocked, .. } in hosts {
        let Some(demand) = pending.get_mut(key) else { continue };
        demand.interval = interval.unwrap_or(demand.interval);
        demand.latency = latency.unwrap_or(demand.latency);
        if blocked.is_some() || backoff.is_some_and(|backoff| backoff.until > now) {
            demand.pending = 0;
        }
    }
    Ok(pending.into_values().collect())
}

/// Returns the demand for a host of a crawl according to the settings; more is known of a host that was requested
/// already.
fn demand(backend: &Backend, host: &HostStats) -> Option<(HostKey, Demand)> {
    let url = CanonicalUrl::parse(&format!("http://{}/", host.host)).ok()?;
    let policy = backend.settings.politeness.host_policy(&url.host());
    let (interval, concurrency) = (policy.pace.interval, policy.pace.concurrency);
    let demand = Demand { pending: host.pending(), interval, concurrency, latency: ASSUMED_LATENCY };
    Some((policy.key, demand))
}

fn render(numbers: &Numbers) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    with_local_recorder(&recorder, || tell(numbers));
    recorder.handle().render()
}

fn tell(numbers: &Numbers) {
    describe_gauge!("trawl_crawls", "Crawls that are known, by status");
    describe_gauge!(
        "trawl_crawls_stalled",
        "Crawls that run and have URLs left of which none has ended for events.stalled_after"
    );
    describe_gauge!(
        "trawl_crawls_amiss",
        "Crawls that run, or are the last of their spider and ended within a day, by what is amiss with them"
    );
    describe_gauge!("trawl_urls_pending", "URLs of all crawls without a final state");
    describe_gauge!("trawl_jobs", "Jobs that are known: pending, running, and those that are over");
    describe_gauge!("trawl_jobs_pending", "Jobs that wait for a worker");
    describe_gauge!("trawl_workers", "Workers that live");
    describe_gauge!(
        "trawl_workers_of_use",
        "Workers that the hosts and rates of running crawls could keep busy"
    );
    describe_gauge!("trawl_workers_in_trouble", "Workers that something keeps from their work");
    describe_gauge!("trawl_workers_in_flight", "URLs in the hands of all workers");
    describe_gauge!(
        "trawl_workers_pages_per_second",
        Unit::CountPerSecond,
        "Pages and tasks that all workers bring to an end in a second, however they end"
    );
    describe_gauge!(
        "trawl_workers_that_would_help",
        "How many more workers the hosts and rates of running crawls could keep busy"
    );
    describe_gauge!("trawl_hosts", "Hosts that were asked lately, are backing off, or are blocked");
    describe_gauge!("trawl_hosts_backing_off", "Hosts that want to be left alone now");
    describe_gauge!("trawl_hosts_blocked", "Hosts that a person has blocked");
    tell_of_lanes(&numbers.lanes);
    for (status, count) in &numbers.crawls {
        gauge!("trawl_crawls", "status" => *status).set(*count as f64);
    }
    gauge!("trawl_crawls_stalled").set(numbers.stalled as f64);
    for (kind, count) in &numbers.amiss {
        gauge!("trawl_crawls_amiss", "what" => *kind).set(*count as f64);
    }
    gauge!("trawl_urls_pending").set(numbers.pending as f64);
    let JobCounts { pending, running, ended } = numbers.jobs;
    gauge!("trawl_jobs_pending").set(pending as f64);
    for (status, jobs) in [("pending", pending), ("running", running), ("ended", ended)] {
        gauge!("trawl_jobs", "status" => status).set(jobs as f64);
    }
    gauge!("trawl_workers").set(numbers.workers as f64);
    gauge!("trawl_workers_of_use").set(numbers.of_use as f64);
    gauge!("trawl_workers_in_trouble").set(numbers.troubled as f64);
    gauge!("trawl_workers_in_flight").set(numbers.in_flight as f64);
    gauge!("trawl_workers_pages_per_second").set(numbers.pages_per_second);
    gauge!("trawl_workers_that_would_help").set(numbers.would_help as f64);
    gauge!("trawl_hosts").set(numbers.hosts as f64);
    gauge!("trawl_hosts_backing_off").set(numbers.backing_off as f64);
    gauge!("trawl_hosts_blocked").set(numbers.blocked as f64);
}

fn tell_of_lanes(lanes: &[LaneState]) {
    describe_gauge!(
        "trawl_lane_messages",
        "Messages that wait in a lane; what workers hold is not among them"
    );
    describe_gauge!(
        "trawl_lane_oldest_seconds",
        Unit::Seconds,
        "For how long the next message of a lane has waited, at most; absent where that is not known"
    );
    for LaneState { lane, messages, oldest, .. } in lanes {
        gauge!("trawl_lane_messages", "lane" => lane.as_str()).set(*messages as f64);
        // Where nothing waits, the oldest age is zero.
        if let Some(oldest) = oldest.or((*messages == 0).then_some(Duration::ZERO)) {
            gauge!("trawl_lane_oldest_seconds", "lane" => lane.as_str()).set(oldest.as_secs_f64());
        }
    }
}
