//! A crawl's stats.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::frontier::judging::Judging;
use crate::frontier::outcome::Terminal;
use crate::frontier::{DedupScope, Period};
use crate::names::{CrawlId, CrawlRef, SpiderName};
use crate::time::UnixMs;

/// The beginning of reasons that count items.
pub const ITEMS: &str = "items:";

/// The beginning of reasons that count items by the result of comparing them with those of the last crawl.
pub const CHANGES: &str = "change:";

/// The beginning of reasons that count items which have a field that `[expect]` names.
pub(crate) const HAS: &str = "has:";

/// The reason that counts items which equal one of another page of the crawl, where `[quality]` looks at them.
pub(crate) const DUPLICATES: &str = "duplicate:items";

/// The reason that counts pages which gave no item although their spider extracts some.
pub(crate) const WITHOUT_ITEMS: &str = "done:without_items";

/// The reason that counts those of them that have a field for a password, as a log-in page has, though their spider
/// does not log in.
pub(crate) const LOGIN_FORM: &str = "done:login_form";

/// The beginning of reasons that count pages which lack a required field.
const MISSING: &str = "missing:";

/// The beginning of reasons that count pages of which an item has a required field: `with:price`, of a kind of items
/// `with:product.price`.
pub(crate) const WITH: &str = "with:";

/// The beginning of reasons that count pages of which no item has a required field.
pub(crate) const WITHOUT: &str = "without:";

/// The reason that counts entries of sources which are no URLs.
const INVALID: &str = "dropped:invalid";

/// The reason that counts entries of sources which were seen.
pub const SEEN: &str = "dropped:seen";

/// The reason that counts entries of sources which were seen, and failed for good in an earlier crawl of the spider.
pub(crate) const FAILED_BEFORE: &str = "dropped:failed_before";

/// The beginning of reasons that count what pages and tasks handed to another spider.
pub(crate) const HANDED: &str = "handed:";

/// The time for which a crawl that has ended counts as recent.
pub const RECENT: Duration = Duration::from_secs(24 * 3600);

/// Fewer pages say nothing of the others.
pub const MIN_PAGES: u64 = 20;

/// Minimum number of pages without a required field that say something, if no page has it.
const MIN_WITHOUT_FIELD: u64 = 3;

/// Minimum number of fetched URLs of a small crawl that say something, if all but one have failed.
const MIN_FAILED: u64 = 5;

/// The state of a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum CrawlState {
    /// Scheduled, not yet started.
    Pending,
    /// URLs are admitted or fetched.
    Running,
    /// Held by a person, or by trawl itself ([`CrawlStats::held`]).
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

    /// Returns the word for a crawl in this state, for its main problem, or that it found nothing new.
    pub fn word(
        self,
        is_incomplete: bool,
        is_empty: bool,
        is_nothing_new: bool,
        is_stalled: bool,
    ) -> &'static str {
        match self {
            Self::Cancelled => self.as_str(),
            _ if is_incomplete => "incomplete",
            _ if is_empty => "empty",
            _ if is_nothing_new => "nothing new",
            _ if is_stalled => "stalled",
            _ => self.as_str(),
        }
    }

    /// Whether nothing more will happen to the crawl.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled)
    }
}

/// The number of URLs of a crawl by outcome.
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
    /// The number of URLs that have reached their terminal state.
    pub fn ended(&self) -> u64 {
        self.done + self.failed + self.skipped + self.expired + self.cancelled
    }

    /// The number of URLs that workers have brought to their terminal state: all except those that were dropped with
    /// their crawl.
    pub fn handled(&self) -> u64 {
        self.ended() - self.cancelled
    }

    /// Whether more than `percent` of many fetched URLs have failed.
    pub(crate) fn is_mostly_failed(&self, percent: u8) -> bool {
        let fetched = self.done + self.failed;
        fetched >= MIN_PAGES && self.failed * 100 > fetched * u64::from(percent)
    }

    /// The counter of a terminal state.
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
    /// The state of the crawl.
    pub status: CrawlState,
    /// Whether sources of it were not read to their end: a reader died, was stopped, or met an error, and no later
    /// session has read the same sources.
    pub incomplete: bool,
    /// Whether it has finished without any result: no page was fetched, and no task done. A crawl that found all its
    /// pages unchanged is not empty.
    pub empty: bool,
    /// Whether it has finished and all that its sources name was seen before, as it was told to leave out. Such a crawl
    /// is not empty.
    pub nothing_new: bool,
    /// Whether it is running, has URLs left, and none has ended for `events.stalled_after`. Always false in a single
    /// process.
    pub stalled: bool,
    /// Why it is paused, if nobody but trawl has done so: a person has to see to something, and then resume it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The URLs that it takes for seen.
    pub dedup: DedupScope,
    /// Its counters.
    #[serde(flatten)]
    pub counts: Counts,
    /// URLs without a terminal state.
    pub pending: u64,
    /// How many bytes the bodies had that were done.
    pub bytes: u64,
    /// The number of items of its pages and tasks.
    pub items: u64,
    /// How many of each kind; those of a spider without kinds have an empty name.
    pub item_kinds: BTreeMap<String, u64>,
    /// In a crawl that fetches pages again, how many are `new`, `changed`, `unchanged` and `gone`. The items of pages
    /// whose servers said that they had not changed are among the unchanged ones, and not among `items`.
    pub item_changes: BTreeMap<String, u64>,
    /// The number of URLs by the reason why they ended: `failed:http`, `skipped:robots`; of pages without a required
    /// field: `missing:price`; of links that each limit left out: `left_out:depth`; of work handed
    /// to another spider: `handed:shop`; and of sources' entries that were not admitted: `dropped:seen`.
    pub reasons: BTreeMap<String, u64>,
    /// The required fields that were looked for, with the number of pages that have and that lack each. Those of a kind
    /// of items follow its name: `product.price`.
    #[serde(skip)]
    pub required: BTreeMap<String, FieldPages>,
    /// The number of links that limits left out. A link counts for each page that has it.
    pub left_out: u64,
    /// Time from its start to its end, or to now; in a single process, as far as it was running.
    pub seconds: f64,
    /// Sources that were not read to their end, each with the reason, where the log was asked for them.
    #[serde(skip)]
    pub unread: Vec<String>,
    /// Problems that keep workers from its work alone, in words, where the workers were asked for them.
    #[serde(skip)]
    pub troubles: Vec<String>,
    /// How its result is judged.
    #[serde(skip)]
    pub judging: Judging,
    /// Whether every source has been read to its end.
    #[serde(skip)]
    pub discovered: bool,
    /// When it started.
    #[serde(skip)]
    pub started: UnixMs,
}

/// The number of pages that have a required field, and of those that lack it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldPages {
    /// Pages of which an item has it.
    pub with: u64,
    /// Pages of which no item has it.
    pub without: u64,
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
    /// Returns the counters of tasks, which have no host, if `hosts` are all hosts of the crawl. They may have been
    /// read a moment later.
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
    /// The number of URLs without a terminal state.
    pub fn pending(&self) -> u64 {
        self.counts.admitted.saturating_sub(self.counts.ended())
    }
}

impl CrawlStats {
    /// Creates the stats of a crawl in which nothing has happened yet.
    pub fn empty(CrawlRef { id, spider }: CrawlRef, status: CrawlState, started: UnixMs) -> Self {
        Self {
            crawl: id,
            spider,
            status,
            incomplete: false,
            empty: false,
            nothing_new: false,
            stalled: false,
            held: None,
            dedup: DedupScope::Spider,
            counts: Counts::default(),
            pending: 0,
            bytes: 0,
            items: 0,
            item_kinds: BTreeMap::new(),
            item_changes: BTreeMap::new(),
            reasons: BTreeMap::new(),
            required: BTreeMap::new(),
            left_out: 0,
            seconds: 0.0,
            unread: Vec::new(),
            troubles: Vec::new(),
            judging: Judging::default(),
            discovered: false,
            started,
        }
    }

    /// Fills in what follows from the rest: whether it is empty, and what among the reasons counts items and required
    /// fields.
    pub fn concluded(mut self) -> Self {
        let Counts { done, failed, .. } = self.counts;
        let is_over = self.status == CrawlState::Finished;
        let nothing_new = is_over && self.judging.is_dedup_chosen && self.found_nothing_new();
        let empty = is_over && done + failed == 0 && !self.found_all_as_it_was() && !nothing_new;
        for (reason, number) in std::mem::take(&mut self.reasons) {
            if let Some(kind) = reason.strip_prefix(ITEMS) {
                self.items += number;
                *self.item_kinds.entry(kind.to_owned()).or_default() += number;
            } else if let Some(change) = reason.strip_prefix(CHANGES) {
                *self.item_changes.entry(change.to_owned()).or_default() += number;
            } else if let Some(field) = reason.strip_prefix(WITH) {
                self.required.entry(field.to_owned()).or_default().with += number;
            } else if let Some(field) = reason.strip_prefix(WITHOUT) {
                self.required.entry(field.to_owned()).or_default().without += number;
            } else {
                self.reasons.insert(reason, number);
            }
        }
        Self { empty, nothing_new, ..self }
    }

    /// Whether it has fetched nothing because pages were as they were.
    pub(crate) fn found_all_as_it_was(&self) -> bool {
        self.counts.done == 0 && self.found_some_as_they_were()
    }

    /// Whether it has finished without a page fetched or a task done, and not because pages are as they were.
    pub fn gave_nothing(&self) -> bool {
        let Counts { done, failed, .. } = self.counts;
        let has_failed = self.status == CrawlState::Finished && done == 0 && failed > 0;
        self.empty || self.nothing_new || has_failed
    }

    /// Whether it was given nothing that its spider had not seen.
    pub(crate) fn found_nothing_new(&self) -> bool {
        let Counts { done, failed, .. } = self.counts;
        self.dedup == DedupScope::Spider && done + failed == 0 && self.reasons.contains_key(SEEN)
    }

    /// Whether it has left out pages because they were as they were.
    fn found_some_as_they_were(&self) -> bool {
        self.as_they_were() > 0
    }

    /// The number of pages that it has left out because they were as they were.
    pub(crate) fn as_they_were(&self) -> u64 {
        const AS_THEY_WERE: [&str; 4] =
            ["skipped:unchanged", "skipped:fresh", "dropped:unchanged", "dropped:fresh"];
        AS_THEY_WERE.iter().filter_map(|reason| self.reasons.get(*reason)).sum()
    }

    /// Whether a selector no longer matches: many pages gave no item, or several lack a required field, and none has
    /// it.
    pub fn has_lost_items(&self) -> bool {
        self.has_no_items() || self.lost_fields().next().is_some()
    }

    /// The required fields that several pages lack, and none has, each with the number of pages that lack it.
    pub(crate) fn lost_fields(&self) -> impl Iterator<Item = (&str, u64)> {
        let lost =
            self.required.iter().filter(|(_, pages)| pages.with == 0 && pages.without >= MIN_WITHOUT_FIELD);
        lost.map(|(field, pages)| (field.as_str(), pages.without))
    }

    /// The required fields that pages lack, each with their number.
    pub fn missing_fields(&self) -> impl Iterator<Item = (&str, u64)> {
        self.reasons.iter().filter_map(|(reason, number)| Some((reason.strip_prefix(MISSING)?, *number)))
    }

    /// Whether more than `percent` of many fetched URLs have failed; of a small crawl that has finished, all of them,
    /// or all but one of at least five.
    pub fn is_failing(&self, percent: u8) -> bool {
        let Counts { done, failed, .. } = self.counts;
        let fetched = done + failed;
        let is_above = failed * 100 > fetched * u64::from(percent);
        let is_small = self.status == CrawlState::Finished && fetched < MIN_PAGES && is_above;
        // A single new page that fails beside pages that are well says nothing of the crawl.
        let is_well_otherwise = self.found_some_as_they_were() || self.reasons.contains_key(SEEN);
        let nearly_all = done <= 1 && fetched >= MIN_FAILED;
        self.counts.is_mostly_failed(percent) || is_small && (nearly_all || done == 0 && !is_well_otherwise)
    }

    /// Whether many of its pages gave no item, and none gave any, although its spider extracts some. Always false if
    /// pages were left out because they were as they were: those may have items.
    pub(crate) fn has_no_items(&self) -> bool {
        let without = self.reasons.get(WITHOUT_ITEMS).copied().unwrap_or_default();
        self.items == 0 && without >= MIN_PAGES && !self.found_some_as_they_were()
    }

    /// The number of entries of its sources that are left out as they failed for good in an earlier crawl.
    pub fn failed_before(&self) -> u64 {
        self.reasons.get(FAILED_BEFORE).copied().unwrap_or_default()
    }

    /// The number of entries of its sources that are no URLs; each is a dead letter.
    pub fn invalid(&self) -> u64 {
        self.reasons.get(INVALID).copied().unwrap_or_default()
    }

    /// Whether a crawl that has ended gave no item although its spider extracts some, however few pages it had.
    pub fn ended_without_items(&self) -> bool {
        let is_without = self.items == 0 && self.reasons.contains_key(WITHOUT_ITEMS);
        self.status.is_over() && is_without && !self.found_some_as_they_were()
    }

    /// Returns the ad-hoc crawls of the spiders to which its pages and tasks handed work.
    pub(crate) fn handed_to(&self) -> impl Iterator<Item = CrawlRef> {
        let spiders = self.reasons.keys().filter_map(|reason| reason.strip_prefix(HANDED)?.parse().ok());
        spiders.map(CrawlRef::adhoc_of)
    }

    /// The time from its start to its end, or to now.
    pub fn period(&self) -> Period {
        let took = Duration::try_from_secs_f64(self.seconds).unwrap_or_default();
        Period { from: self.started, to: self.started.plus(took) }
    }

    /// The crawl's address.
    pub fn crawl_ref(&self) -> CrawlRef {
        CrawlRef { id: self.crawl.clone(), spider: self.spider.clone() }
    }
}
