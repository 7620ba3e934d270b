//! The progress of a run, and its problems.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use trawl_common::frontier::outcome::Skip;
use trawl_common::politeness::waiting::SOON;
use trawl_common::ports::SourcesRead;
use trawl_common::settings::Politeness;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;

use crate::rate_warning::RateWarnings;

/// Counters that a progress bar may read while the run goes on.
#[derive(Debug, Default)]
pub struct Progress {
    sources: AtomicU64,
    found: AtomicU64,
    new: AtomicU64,
    unchanged: AtomicU64,
    fresh: AtomicU64,
    failed_before: AtomicU64,
    invalid: AtomicU64,
    outside: AtomicU64,
    /// The number of pending URLs while the run waits; otherwise zero.
    backlog: AtomicU64,
    /// The hosts that sources wait for, each with the end of its wait.
    hosts: Mutex<Vec<(UnixMs, HostKey)>>,
    workload: Mutex<RateWarnings>,
}

impl Progress {
    pub(crate) fn source(&self) {
        self.sources.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn found(&self, count: usize) {
        self.found.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn new_urls(&self, count: usize) {
        self.new.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts a page that need not be fetched again.
    pub(crate) fn spared(&self, why: Skip) {
        let counter = if why == Skip::Fresh { &self.fresh } else { &self.unchanged };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Records URLs that wait for their host, each with its maximum wait.
    pub(crate) fn waiting<'a>(&self, urls: impl Iterator<Item = (&'a CanonicalUrl, Option<Duration>)>) {
        let mut workload = self.workload.lock();
        for (url, ttl) in urls {
            if let Some(ttl) = ttl {
                workload.add(url.host(), ttl);
            }
        }
    }

    /// Returns one line for each host that is too slow for all its URLs.
    pub(crate) fn overloads(&self, politeness: &Politeness) -> Vec<String> {
        let workload = self.workload.lock();
        workload.overloads(politeness).iter().map(ToString::to_string).collect()
    }

    pub(crate) fn failed_before(&self, count: usize) {
        self.failed_before.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn invalid(&self, count: usize) {
        self.invalid.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn outside(&self) {
        self.outside.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn waits_for_backlog(&self, pending: Option<u64>) {
        self.backlog.store(pending.unwrap_or(0), Ordering::Relaxed);
    }

    /// The number of pending URLs that the run waits for, if there are too many (`producer.max_backlog`).
    pub fn backlog(&self) -> Option<u64> {
        Some(self.backlog.load(Ordering::Relaxed)).filter(|pending| *pending > 0)
    }

    /// Records that a source has to wait for its host, until the return value is dropped. A wait of about a second or
    /// less is not recorded.
    pub(crate) fn waits_for(&self, host: &HostKey, wait: Duration) -> Option<Waiting<'_>> {
        let entry = (wait > SOON).then(|| (UnixMs::now().plus(wait), host.clone()))?;
        self.hosts.lock().push(entry.clone());
        Some(Waiting { progress: self, entry })
    }

    /// Describes the wait of sources: the host that can be requested last, and when.
    pub fn awaited_host(&self) -> Option<String> {
        let hosts = self.hosts.lock();
        let (until, host) = hosts.iter().max()?;
        Some(format!("waiting for {host} until {until}"))
    }

    /// The current counters.
    pub fn snapshot(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (found, new) = (read(&self.found), read(&self.new));
        let (unchanged, fresh) = (read(&self.unchanged), read(&self.fresh));
        Counters {
            sources: read(&self.sources),
            found,
            new,
            unchanged,
            fresh,
            seen: found.saturating_sub(new + unchanged + fresh),
            failed_before: read(&self.failed_before),
            invalid: read(&self.invalid),
            outside: read(&self.outside),
        }
    }
}

/// A source that waits for its host.
pub(crate) struct Waiting<'a> {
    progress: &'a Progress,
    entry: (UnixMs, HostKey),
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut hosts = self.progress.hosts.lock();
        // Equal entries are interchangeable.
        if let Some(at) = hosts.iter().position(|entry| *entry == self.entry) {
            hosts.swap_remove(at);
        }
    }
}

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Sources read to their end.
    pub sources: u64,
    /// URLs found.
    pub found: u64,
    /// Of these, admitted: not seen before.
    pub new: u64,
    /// Of these, skipped because their sitemap says that they are unchanged.
    pub unchanged: u64,
    /// Of these, skipped because they were fetched recently.
    pub fresh: u64,
    /// Of these, seen before.
    pub seen: u64,
    /// Of those seen, failed for good in an earlier crawl of the spider.
    pub failed_before: u64,
    /// Entries that are not URLs; each is a dead letter.
    pub invalid: u64,
    /// URLs outside the spider's domains; they are skipped.
    pub outside: u64,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The final counters.
    #[serde(flatten)]
    pub counters: Counters,
    /// Sources that could not be read completely, each with the reason. All others were read.
    pub problems: Vec<String>,
    /// Sources without any URL: probably not intended.
    pub empty: Vec<String>,
    /// Hosts that are too slow to serve all their URLs before these expire, each with the calculation, the worst first.
    pub overloads: Vec<String>,
    /// Whether the run was stopped before its sources ended.
    pub stopped: bool,
}

impl Report {
    /// Returns the counters for the stats of the crawl.
    pub(crate) fn sources_read(&self) -> SourcesRead {
        let Counters { seen, failed_before, unchanged, fresh, outside, .. } = self.counters;
        SourcesRead {
            incomplete: !self.problems.is_empty(),
            seen: seen.saturating_sub(failed_before),
            failed_before,
            unchanged,
            fresh,
            outside,
            ..SourcesRead::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_hosts_that_sources_wait_for_progress_names_the_one_that_may_be_asked_last() {
        let progress = Progress::default();
        let waits =
            |host: &str, seconds| progress.waits_for(&HostKey::from_text(host), Duration::from_secs(seconds));
        let names = |host: &str| {
            let message = progress.awaited_host().unwrap();
            assert!(message.starts_with(&format!("waiting for {host} until 20")), "{message}");
        };
        assert!(waits("soon.example", 1).is_none());
        assert_eq!(progress.awaited_host(), None);
        let _first = waits("first.example", 60);
        let last = waits("last.example", 120);
        names("last.example");
        drop(last);
        names("first.example");
    }
}
