//! Checks the program's own counters against the fates of the pages.

use std::collections::{BTreeMap, BTreeSet};

use super::account::Account;
use super::facts::Facts;
use super::stats::ReportedStats;
use super::verdict::Judgement;
use crate::faults::fate::Fate;
use crate::faults::scenario::Limit;

/// Bounds on the number of URLs that ended in one way, or were admitted.
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

    /// Returns a complaint if `count` is out of bounds.
    fn complaint(self, name: &str, count: u64) -> Option<String> {
        let Self { least, most } = self;
        let due = if least == most { least.to_string() } else { format!("{least} to {most}") };
        (!(least..=most).contains(&count)).then(|| format!("the stats: {name} is {count} and not {due}"))
    }
}

impl Facts {
    /// Checks that the counters agree with each other, with the event of the end, and with the fate of every page. They
    /// are exact except for pages that Redis was made to forget, which may count or not.
    pub(super) fn judge_stats(&self, accounts: &[Account], verdict: &mut Judgement) {
        let Some(stats) = &self.stats else {
            if self.ended.is_some() && !self.is_end_forgotten() {
                verdict.problems.push("the crawl has no counters".to_owned());
            }
            return;
        };
        verdict.problems.extend(stats.contradictions());
        let mut admitted = Due::default();
        let mut due: BTreeMap<&str, Due> = BTreeMap::new();
        for (page, account) in self.pages.iter().zip(accounts) {
            // The target of a redirect is never admitted, unless something links to it before.
            let is_counted = !self.is_forgettable(account) && !account.is_landing && self.limit.is_none();
            admitted.add(is_counted);
            let ends = self.ends(page.fate, account);
            for end in &ends {
                due.entry(end).or_default().add(is_counted && ends.len() == 1);
            }
        }
        self.judge_limit(stats, verdict);
        verdict.problems.extend(admitted.complaint("admitted", stats.counts.admitted));
        let found = stats.by_reason();
        let names: BTreeSet<&str> = due.keys().chain(found.keys()).copied().collect();
        for name in names {
            let count = found.get(name).copied().unwrap_or_default();
            verdict.problems.extend(due.get(name).copied().unwrap_or_default().complaint(name, count));
        }
    }

    /// Whether Redis was emptied after the crawl's end: it is told again of crawls that go on, not of the counters of
    /// those that have ended.
    fn is_end_forgotten(&self) -> bool {
        let empties = |ended| self.faults.iter().any(|fault| fault.kind.empties_store() && fault.to > ended);
        self.ended.is_some_and(empties)
    }

    /// Checks that the crawl's end was announced, that every copy is a copy of one event, and that it has the same
    /// counters.
    pub(super) fn judge_announcement(&self, verdict: &mut Judgement) {
        let Some(ends) = &self.ends else { return };
        let problem = match ends.as_slice() {
            [] => "no event announced that the crawl had finished".to_owned(),
            [end] => match &self.stats {
                Some(stats) if !end.stats.agree(stats) && !self.is_end_forgotten() => {
                    format!("the event of the end says {:?}, the counters {stats:?}", end.stats)
                }
                _ => return,
            },
            _ => format!("the crawl finished {} times: {ends:?}", ends.len()),
        };
        verdict.problems.push(problem);
    }

    /// Checks that the limit of the crawl is reached, and not exceeded.
    fn judge_limit(&self, stats: &ReportedStats, verdict: &mut Judgement) {
        let (name, count, most) = match self.limit {
            None => return,
            Some(Limit::Pages(most)) => ("done", stats.counts.done, most),
            Some(Limit::PerHost(most)) => ("admitted", stats.counts.admitted, most),
        };
        let most = most as u64;
        let forgotten = self.faults.iter().filter(|fault| fault.kind.forgets()).count() as u64;
        // URLs that Redis forgot do not count any more.
        let least = if forgotten > 0 { 0 } else { most };
        let most = match self.limit {
            // URLs that messages bring back are not refused, however many links were admitted meanwhile.
            Some(Limit::PerHost(_)) => most * (1 + forgotten),
            _ => most,
        };
        verdict.problems.extend(Due { least, most }.complaint(&format!("{name}, which is limited,"), count));
        let left_out: u64 =
            ["skipped:limit", "left_out:max_per_host"].iter().filter_map(|why| stats.reasons.get(*why)).sum();
        if left_out == 0 && least > 0 {
            verdict.problems.push("the stats: nothing was left out, though there is more".to_owned());
        }
    }

    /// Returns how a page can have ended. There are several ways if a limit or a copy of it may have come first, if it
    /// was given up as poison, or if its end is unknown.
    fn ends(&self, fate: Fate, account: &Account) -> Vec<&'static str> {
        let mut ends = self.units.ends(fate).to_vec();
        let poisoned = self.units.poisoned();
        let may_be = account.dead_letters.contains("poison") || !account.is_settled();
        if may_be && !ends.contains(&poisoned) {
            ends.push(poisoned);
        }
        if let Some(Limit::Pages(_)) = self.limit {
            ends.push("skipped:limit");
        }
        ends
    }

    /// Whether Redis was made to forget everything about a page, and the page was not requested again.
    fn is_forgettable(&self, account: &Account) -> bool {
        let Some(last) = account.asks.last() else { return false };
        self.faults.iter().filter(|fault| fault.kind.forgets()).any(|fault| {
            // URLs admitted before the last second come back as unfinished. A store that was emptied before then
            // admitted them anew.
            let from = fault.from.saturating_sub(fault.kind.reaches_back());
            let emptied = self.faults.iter().filter(|other| other.kind.empties_store() && other.from < from);
            let since = emptied.map(|other| other.from).max().unwrap_or_default();
            let first = account.asks.iter().find(|ask| ask.asked >= since);
            last.asked <= fault.to
                && (fault.kind.empties_store() || first.is_some_and(|first| first.asked >= from))
        })
    }
}
