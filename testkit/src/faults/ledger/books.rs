//! The program's own books, against the fates of the pages.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use trawl_common::frontier::outcome::Terminal;

use super::{Account, Facts, Verdict};
use crate::faults::scenario::Limit;
use crate::faults::web::Fate;

/// A URL that was put down as poison fails by this.
const POISONED: &str = "failed:parse";

/// What a crawl says of itself: `trawl status --json`, or the event of its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Books {
    /// Where it stands.
    pub status: String,
    /// How many URLs it has taken in, and how many ended how.
    #[serde(flatten)]
    pub counts: Counts,
    /// URLs that have not ended.
    pub pending: u64,
    /// How many ended why.
    pub reasons: BTreeMap<String, u64>,
    /// The counters of each host, where they are told.
    #[serde(default)]
    pub hosts: Vec<Host>,
}

/// The counters of a crawl, or of one host in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Counts {
    pub admitted: u64,
    pub done: u64,
    pub failed: u64,
    pub skipped: u64,
    pub expired: u64,
    pub cancelled: u64,
}

/// The books of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Its counters.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Counts {
    fn of(&self, terminal: Terminal) -> u64 {
        match terminal {
            Terminal::Done => self.done,
            Terminal::Failed => self.failed,
            Terminal::Skipped => self.skipped,
            Terminal::Expired => self.expired,
            Terminal::Cancelled => self.cancelled,
        }
    }

    fn ended(&self) -> u64 {
        Terminal::ALL.into_iter().map(|terminal| self.of(terminal)).sum()
    }
}

/// How many URLs can have ended in one way, or were taken in.
#[derive(Clone, Copy, Default)]
struct Due {
    least: u64,
    most: u64,
}

impl Due {
    fn add(&mut self, is_certain: bool) {
        self.least += u64::from(is_certain);
        self.most += 1;
    }

    /// What is wrong with a counter, if that is none of these.
    fn complaint(self, name: &str, count: u64) -> Option<String> {
        let Self { least, most } = self;
        let due = if least == most { least.to_string() } else { format!("{least} to {most}") };
        (!(least..=most).contains(&count)).then(|| format!("the books: {name} is {count} and not {due}"))
    }
}

impl Facts {
    /// The books agree with themselves, with what was told of the end, and with the fate of every page. They are exact
    /// but for what Redis was made to forget: that may count, or not.
    pub(super) fn judge_books(&self, accounts: &[Account], verdict: &mut Verdict) {
        let Some(books) = &self.books else {
            if self.ended.is_some() {
                verdict.problems.push("the crawl has no books".to_owned());
            }
            return;
        };
        verdict.problems.extend(books.contradictions());
        let mut admitted = Due::default();
        let mut due: BTreeMap<&str, Due> = BTreeMap::new();
        for (page, account) in self.pages.iter().zip(accounts) {
            // Where a redirect led is never taken in, unless something links to it before.
            let is_counted = !self.is_forgettable(account) && !account.is_landing && self.limit.is_none();
            admitted.add(is_counted);
            let ends = self.ends(page.fate, account);
            for end in &ends {
                due.entry(end).or_default().add(is_counted && ends.len() == 1);
            }
        }
        self.judge_limit(books, verdict);
        verdict.problems.extend(admitted.complaint("admitted", books.counts.admitted));
        let told = books.by_reason();
        let names: BTreeSet<&str> = due.keys().chain(told.keys()).copied().collect();
        for name in names {
            let count = told.get(name).copied().unwrap_or_default();
            verdict.problems.extend(due.get(name).copied().unwrap_or_default().complaint(name, count));
        }
    }

    /// The crawl's end was announced, and every copy is a copy of one event, which says what the books say.
    pub(super) fn judge_announcement(&self, verdict: &mut Verdict) {
        let Some(ends) = &self.ends else { return };
        let problem = match ends.as_slice() {
            [] => "no event told that the crawl had finished".to_owned(),
            [end] => match &self.books {
                Some(books) if !end.books.agree(books) => {
                    format!("the event of the end says {:?}, the books {books:?}", end.books)
                }
                _ => return,
            },
            _ => format!("the crawl finished {} times: {ends:?}", ends.len()),
        };
        verdict.problems.push(problem);
    }

    /// What bounds the crawl is reached, and not passed.
    fn judge_limit(&self, books: &Books, verdict: &mut Verdict) {
        let (name, count, most) = match self.limit {
            None => return,
            Some(Limit::Pages(most)) => ("done", books.counts.done, most),
            Some(Limit::PerHost(most)) => ("admitted", books.counts.admitted, most),
        };
        let most = most as u64;
        // What Redis forgot does not count any more.
        let least = if self.faults.iter().any(|fault| fault.kind.forgets()) { 0 } else { most };
        verdict.problems.extend(Due { least, most }.complaint(&format!("{name}, which is limited,"), count));
        let left_out: u64 =
            ["skipped:limit", "left_out:max_per_host"].iter().filter_map(|why| books.reasons.get(*why)).sum();
        if left_out == 0 && least > 0 {
            verdict.problems.push("the books: nothing was left out, though there is more".to_owned());
        }
    }

    /// How a page can have ended: in several ways where a limit or a copy of it may have come first, where it was put
    /// down as poison, and where nobody can say.
    fn ends(&self, fate: Fate, account: &Account) -> Vec<&'static str> {
        let mut ends = match fate {
            Fate::Good | Fate::Flaky(_) => vec!["done"],
            Fate::Missing | Fate::Broken => vec!["failed:http"],
            Fate::Silent => vec!["failed:timeout"],
            Fate::Redirect(_) => vec!["done", "skipped:duplicate"],
        };
        if account.letters.contains("poison") || !account.is_settled() {
            ends.push(POISONED);
        }
        if let Some(Limit::Pages(_)) = self.limit {
            ends.push("skipped:limit");
        }
        ends
    }

    /// Whether Redis was made to forget all that it knew of a page, and that was not asked for again.
    fn is_forgettable(&self, account: &Account) -> bool {
        let (Some(first), Some(last)) = (account.asks.first(), account.asks.last()) else { return false };
        self.faults.iter().filter(|fault| fault.kind.forgets()).any(|fault| {
            // What was taken in before the last second comes back as unfinished.
            let from = fault.from.saturating_sub(fault.kind.reaches_back());
            last.asked <= fault.to && (fault.kind.empties_store() || first.asked >= from)
        })
    }
}

impl Books {
    /// How many URLs ended why; those that are done, for whatever reason.
    fn by_reason(&self) -> BTreeMap<&str, u64> {
        let ended = self.reasons.iter().filter(|(reason, _)| {
            let kind = reason.split(':').next().unwrap_or_default();
            Terminal::ALL.iter().any(|terminal| terminal.as_str() == kind)
        });
        ended.map(|(reason, count)| (reason.as_str(), *count)).chain([("done", self.counts.done)]).collect()
    }

    /// Whether other books, which may tell less, say the same.
    fn agree(&self, other: &Self) -> bool {
        let said = |books: &Self| Self { hosts: Vec::new(), ..books.clone() };
        said(self) == said(other)
    }

    /// What in these books cannot be, whatever was crawled.
    fn contradictions(&self) -> Vec<String> {
        let Self { status, counts, pending, .. } = self;
        let mut wrong = Vec::new();
        if status != "finished" || *pending != 0 || counts.admitted != counts.ended() {
            wrong.push(format!("the books: {status} with {pending} pending, {counts:?}"));
        }
        for terminal in [Terminal::Failed, Terminal::Skipped] {
            let prefix = format!("{}:", terminal.as_str());
            let reasons = self.reasons.iter().filter(|(reason, _)| reason.starts_with(&prefix));
            let sum: u64 = reasons.map(|(_, count)| count).sum();
            if sum != counts.of(terminal) {
                wrong.push(format!("the books: {} {terminal:?}, with {sum} reasons", counts.of(terminal)));
            }
        }
        if !self.hosts.is_empty() {
            let sum =
                |count: fn(&Counts) -> u64| self.hosts.iter().map(|host| count(&host.counts)).sum::<u64>();
            let hosts = Counts {
                admitted: sum(|counts| counts.admitted),
                done: sum(|counts| counts.done),
                failed: sum(|counts| counts.failed),
                skipped: sum(|counts| counts.skipped),
                expired: sum(|counts| counts.expired),
                cancelled: sum(|counts| counts.cancelled),
            };
            if hosts != *counts {
                wrong.push(format!("the books: {counts:?}, but all hosts together {hosts:?}"));
            }
        }
        wrong
    }
}
