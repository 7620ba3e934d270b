//! What a running crawl waits for, as `trawl status` says it.

use std::collections::BTreeSet;

use trawl_common::frontier::crawl::{CrawlState, CrawlStats, HostStats};
use trawl_common::ports::{HostBackoff, HostState, WorkerState};
use trawl_common::settings::Politeness;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;

use crate::backend::Backend;

/// What keeps a crawl's URLs waiting, as far as it shows: a person, hosts, what workers say, or that there are none.
pub(crate) async fn of(
    backend: &Backend,
    stats: &CrawlStats,
    hosts: &[HostStats],
) -> Result<Vec<String>, trawl_cli::Fail> {
    if stats.status.is_over() || stats.pending == 0 {
        return Ok(Vec::new());
    }
    let states = backend.hosts.hosts().await?;
    let pending: Vec<&HostStats> = hosts.iter().filter(|stats| stats.pending() > 0).collect();
    let workers = backend.stats.workers().await?;
    let mut all = Vec::new();
    if stats.status == CrawlState::Paused {
        all.push(format!("it is paused: `trawl resume {}`", stats.crawl));
    }
    if backend.is_fleet() && workers.is_empty() {
        all.push("no worker lives: start one with `worker`".to_owned());
    }
    all.extend(of_hosts(&states, &pending, &backend.settings.politeness, UnixMs::now()));
    all.extend(of_workers(&workers));
    Ok(all)
}

/// Those of the hosts that want to be left alone, or must not be asked.
pub(crate) fn of_hosts(
    states: &[HostState],
    hosts: &[&HostStats],
    politeness: &Politeness,
    now: UnixMs,
) -> Vec<String> {
    let key = |stats: &&HostStats| {
        let url = CanonicalUrl::parse(&format!("http://{}/", stats.host)).ok()?;
        Some(politeness.host_policy(&url.host()).key)
    };
    let keys: BTreeSet<HostKey> = hosts.iter().filter_map(key).collect();
    let waiting = states.iter().filter(|state| keys.contains(&state.key));
    let reason = |state: &HostState| match (&state.blocked, &state.backoff) {
        (Some(_), _) => Some(format!("{} is blocked", state.key)),
        (None, Some(HostBackoff { until, status: 0, .. })) if *until > now => {
            Some(format!("{} redirects to a ban and is left alone until {until}", state.key))
        }
        (None, Some(HostBackoff { until, status, .. })) if *until > now => {
            Some(format!("{} answered {status} and is left alone until {until}", state.key))
        }
        _ => None,
    };
    waiting.filter_map(reason).collect()
}

fn of_workers(workers: &[WorkerState]) -> Vec<String> {
    let waiting = workers.iter().filter(|worker| !worker.is_well());
    waiting.map(|worker| format!("{}: {}", worker.worker, worker.health)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use trawl_common::frontier::crawl::Counts;

    #[test]
    fn it_names_the_hosts_of_the_crawl_that_are_left_alone_and_until_when() {
        let now = UnixMs(1_700_000_000_000);
        let until = now.plus(Duration::from_secs(60));
        let backoff = |until| Some(HostBackoff { since: now, until, strikes: 1, status: 503 });
        let state = |name: &str, until, blocked| HostState {
            key: HostKey::from_text(name),
            interval: None,
            next: now,
            line: now,
            under_way: 0,
            latency: None,
            backoff: backoff(until),
            blocked,
        };
        let states = [
            state("busy.example", until, None),
            state("calm.example", now, None),
            state("forbidden.example", now, Some(now)),
            state("of-another-crawl.example", until, None),
        ];
        let hosts = ["busy.example:8080", "calm.example", "forbidden.example"].map(|host| HostStats {
            host: host.to_owned(),
            counts: Counts { admitted: 2, done: 1, ..Counts::default() },
            bytes: 0,
        });
        assert_eq!(
            of_hosts(&states, &hosts.each_ref(), &Politeness::default(), now),
            [
                format!("busy.example answered 503 and is left alone until {until}"),
                "forbidden.example is blocked".to_owned()
            ]
        );
    }
}
