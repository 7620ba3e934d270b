//! A crawl's stats.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::frontier::outcome::Terminal;
use crate::names::{CrawlId, CrawlRef, SpiderName};
use crate::spider::DedupScope;
use crate::time::UnixMs;

/// The beginning of reasons that count items.
pub const ITEMS: &str = "items:";

/// The beginning of reasons that count items which have a field that `[expect]` names.
pub const HAS: &str = "has:";

/// The reason that counts pages which gave no item although their spider extracts some.
pub const WITHOUT_ITEMS: &str = "done:without_items";

/// Fewer pages say nothing of the others.
pub const FEWEST: u64 = 20;

/// Where a crawl stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum CrawlState {
    /// Scheduled, not yet started.
    Pending,
    /// URLs are admitted or fetched.
    Running,
    /// Held by a person.
    Paused,
    /// Discovery has ended and every URL has its terminal state.
    Finished,
    /// Stopped by a person.
    Cancelled,
}

impl CrawlState {
    /// The name in stats and output.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether nothing will happen to the crawl any more.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled)
    }
}

/// How many URLs of a crawl ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// URLs that were new and taken in.
    pub admitted: u64,
    /// Fetched and stored.
    pub done: u64,
    /// Failed for good.
    pub failed: u64,
    /// Left out on purpose.
    pub skipped: u64,
    /// Outlived their deadline.
    pub expired: u64,
    /// Dropped with their crawl.
    pub cancelled: u64,
}

impl Counts {
    /// URLs that have reached their terminal state.
    pub fn ended(&self) -> u64 {
        self.done + self.failed + self.skipped + self.expired + self.cancelled
    }

    /// URLs that workers have brought to their terminal state: all but those that were dropped with their crawl.
    pub fn handled(&self) -> u64 {
        self.ended() - self.cancelled
    }

    /// The counter of one terminal state.
    pub fn of(&mut self, terminal: Terminal) -> &mut u64 {
        match terminal {
            Terminal::Done => &mut self.done,
            Terminal::Skipped => &mut self.skipped,
            Terminal::Failed => &mut self.failed,
            Terminal::Expired => &mut self.expired,
            Terminal::Cancelled => &mut self.cancelled,
        }
    }
}

/// A crawl's stats at one moment, as `status`, `wait` and `crawl` print them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrawlStats {
    /// The crawl.
    pub crawl: CrawlId,
    /// Its spider.
    pub spider: SpiderName,
    /// Where it stands.
    pub status: CrawlState,
    /// Whether sources of it were not read to their end: whoever read them died, was stopped, or met an error, and nobody has read the
    /// same since.
    pub incomplete: bool,
    /// Whether it has finished and nothing came of it: no page was fetched, and no task done. One that found all its pages as they were
    /// has had its use.
    pub empty: bool,
    /// Whether it runs, has URLs left, and none has ended for `events.stalled_after`. In one process nobody looks for that.
    pub stalled: bool,
    /// Which URLs it takes for seen.
    pub dedup: DedupScope,
    /// Its counters.
    #[serde(flatten)]
    pub counts: Counts,
    /// URLs without a terminal state.
    pub pending: u64,
    /// How many bytes the bodies had that were done.
    pub bytes: u64,
    /// How many items its pages and tasks gave.
    pub items: u64,
    /// How many of each kind; those of a spider without kinds have an empty name.
    pub item_kinds: BTreeMap<String, u64>,
    /// How many URLs ended why: `failed:http`, `skipped:robots`; how many pages lack a required field: `missing:price`;
    /// how many links each limit left out: `left_out:depth`; and how much of what sources name was not taken in: `dropped:seen`.
    pub reasons: BTreeMap<String, u64>,
    /// How many links limits left out. A link counts for each page that has it.
    pub left_out: u64,
    /// From its start to its end, or to now; in one process, as far as that was running.
    pub seconds: f64,
    /// Whether every source has been read to its end.
    #[serde(skip)]
    pub discovered: bool,
    /// When it started.
    #[serde(skip)]
    pub started: UnixMs,
}

/// A crawl's stats of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostStats {
    /// The host, with its port if that is not the usual one.
    pub host: String,
    /// Its counters.
    #[serde(flatten)]
    pub counts: Counts,
    /// How many bytes the bodies had that were done.
    pub bytes: u64,
}

impl CrawlStats {
    /// What is counted of tasks, which have no host, where `hosts` are all that the crawl has. They may have been read a moment later.
    pub fn of_tasks(&self, hosts: &[HostStats]) -> Counts {
        let rest = |of: fn(&Counts) -> u64| {
            let of_hosts: u64 = hosts.iter().map(|host| of(&host.counts)).sum();
            of(&self.counts).saturating_sub(of_hosts)
        };
        Counts {
            admitted: rest(|counts| counts.admitted),
            done: rest(|counts| counts.done),
            failed: rest(|counts| counts.failed),
            skipped: rest(|counts| counts.skipped),
            expired: rest(|counts| counts.expired),
            cancelled: rest(|counts| counts.cancelled),
        }
    }
}

impl HostStats {
    /// URLs without a terminal state.
    pub fn pending(&self) -> u64 {
        self.counts.admitted.saturating_sub(self.counts.ended())
    }
}

impl CrawlStats {
    /// Of a crawl in which nothing has happened yet.
    pub fn empty(CrawlRef { id, spider }: CrawlRef, status: CrawlState, started: UnixMs) -> Self {
        Self {
            crawl: id,
            spider,
            status,
            incomplete: false,
            empty: false,
            stalled: false,
            dedup: DedupScope::Spider,
            counts: Counts::default(),
            pending: 0,
            bytes: 0,
            items: 0,
            item_kinds: BTreeMap::new(),
            reasons: BTreeMap::new(),
            left_out: 0,
            seconds: 0.0,
            discovered: false,
            started,
        }
    }

    /// Fills in what follows from the rest: whether it is empty, and what among the reasons counts items.
    pub fn concluded(mut self) -> Self {
        let Counts { done, failed, .. } = self.counts;
        let is_over = self.status == CrawlState::Finished;
        let empty = is_over && done + failed == 0 && !self.found_all_as_it_was();
        let (kinds, reasons): (BTreeMap<_, _>, _) =
            self.reasons.into_iter().partition(|(reason, _)| reason.starts_with(ITEMS));
        for (reason, number) in kinds {
            self.items += number;
            *self.item_kinds.entry(reason.replacen(ITEMS, "", 1)).or_default() += number;
        }
        Self { empty, reasons, ..self }
    }

    /// Whether it has fetched nothing because pages were as they were.
    pub fn found_all_as_it_was(&self) -> bool {
        const AS_THEY_WERE: [&str; 4] =
            ["skipped:unchanged", "skipped:fresh", "dropped:unchanged", "dropped:fresh"];
        self.counts.done == 0 && AS_THEY_WERE.iter().any(|reason| self.reasons.contains_key(*reason))
    }

    /// Whether many of its pages gave no item, and none gave any, although its spider extracts some: a selector no longer matches.
    pub fn has_lost_items(&self) -> bool {
        let without = self.reasons.get(WITHOUT_ITEMS).copied().unwrap_or_default();
        self.items == 0 && without >= FEWEST
    }

    /// The crawl's address.
    pub fn crawl_ref(&self) -> CrawlRef {
        CrawlRef { id: self.crawl.clone(), spider: self.spider.clone() }
    }
}
