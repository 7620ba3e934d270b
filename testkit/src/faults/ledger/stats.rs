//! The stats that a crawl reports.

use std::collections::BTreeMap;

use serde::Deserialize;
use trawl_common::frontier::outcome::Terminal;

/// The output of `trawl status --json`, or the event of a crawl's end.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct ReportedStats {
    /// The crawl's status.
    pub status: String,
    /// Number of URLs admitted, and of URLs ended by terminal state.
    #[serde(flatten)]
    pub counts: ReportedCounts,
    /// URLs that have not ended.
    pub pending: u64,
    /// Number of URLs by reason of their end.
    pub reasons: BTreeMap<String, u64>,
    /// The counters of each host, if present.
    #[serde(default)]
    pub hosts: Vec<ReportedHost>,
}

/// The counters of a crawl, or of one host in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct ReportedCounts {
    pub admitted: u64,
    pub done: u64,
    pub failed: u64,
    pub skipped: u64,
    pub expired: u64,
    pub cancelled: u64,
}

/// The counters of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct ReportedHost {
    /// Its name.
    pub host: String,
    /// Its counters.
    #[serde(flatten)]
    pub counts: ReportedCounts,
}

impl ReportedCounts {
    pub(super) fn of(&self, terminal: Terminal) -> u64 {
        match terminal {
            Terminal::Done => self.done,
            Terminal::Failed => self.failed,
            Terminal::Skipped => self.skipped,
            Terminal::Expired => self.expired,
            Terminal::Cancelled => self.cancelled,
        }
    }

    pub(super) fn ended(&self) -> u64 {
        Terminal::ALL.into_iter().map(|terminal| self.of(terminal)).sum()
    }
}

impl ReportedStats {
    /// Returns the number of URLs by the reason of their end, with all successful ones as `done`.
    pub(super) fn by_reason(&self) -> BTreeMap<&str, u64> {
        let ended = self.reasons.iter().filter(|(reason, _)| {
            let kind = reason.split(':').next().unwrap_or_default();
            Terminal::ALL.iter().any(|terminal| terminal.as_str() == kind)
        });
        ended.map(|(reason, count)| (reason.as_str(), *count)).chain([("done", self.counts.done)]).collect()
    }

    /// Whether these counters equal others, except for those by host, which `other` may lack.
    pub(super) fn agree(&self, other: &Self) -> bool {
        let without_hosts = |stats: &Self| Self { hosts: Vec::new(), ..stats.clone() };
        without_hosts(self) == without_hosts(other)
    }

    /// Returns the contradictions in these counters, whatever was crawled.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let Self { status, counts, pending, .. } = self;
        let mut wrong = Vec::new();
        if status != "finished" || *pending != 0 || counts.admitted != counts.ended() {
            wrong.push(format!("the stats: {status} with {pending} pending, {counts:?}"));
        }
        for terminal in [Terminal::Failed, Terminal::Skipped] {
            let prefix = format!("{}:", terminal.as_str());
            let reasons = self.reasons.iter().filter(|(reason, _)| reason.starts_with(&prefix));
            let sum: u64 = reasons.map(|(_, count)| count).sum();
            if sum != counts.of(terminal) {
                wrong.push(format!("the stats: {} {terminal:?}, with {sum} reasons", counts.of(terminal)));
            }
        }
        if !self.hosts.is_empty() {
            let sum = |count: fn(&ReportedCounts) -> u64| {
                self.hosts.iter().map(|host| count(&host.counts)).sum::<u64>()
            };
            let hosts = ReportedCounts {
                admitted: sum(|counts| counts.admitted),
                done: sum(|counts| counts.done),
                failed: sum(|counts| counts.failed),
                skipped: sum(|counts| counts.skipped),
                expired: sum(|counts| counts.expired),
                cancelled: sum(|counts| counts.cancelled),
            };
            if hosts != *counts {
                wrong.push(format!("the stats: {counts:?}, but all hosts together {hosts:?}"));
            }
        }
        wrong
    }
}
