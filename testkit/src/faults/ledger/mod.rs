//! The account of every URL, from the log of the site, the messages of the broker and the files of items; and a check
//! of the program's own counters against it.

mod account;
mod counts;
mod facts;
mod items;
mod orders;
mod stats;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::HashMap;
use std::time::Duration;

use trawl_common::frontier::MAX_STARTS;

pub use facts::{Ask, DeadLetter, End, Facts, Injected, ItemLine, Page, Quiet, Replay};
pub use stats::ReportedStats;
pub use verdict::{Judgement, Row};

use self::account::Account;
use super::fate::{Fate, HELD_BACK, TIMEOUT};
use super::kind::{Kind, Subject};
use super::scenario::Limit;
use super::units::Units;

/// Maximum time from a page's answer to its settlement, in a worker without faults, on a busy machine.
pub(super) const SETTLING: Duration = Duration::from_secs(1);
/// Maximum time until a worker tries again after a fault; it waits at most as long as the fault lasted.
const TRYING_AGAIN: Duration = Duration::from_secs(10);

impl Facts {
    /// Checks every promise.
    pub fn judge(&self) -> Judgement {
        let mut verdict = Judgement::default();
        verdict.problems.extend_from_slice(&self.complaints);
        for fault in &self.faults {
            verdict.row(Some(fault.kind)).times += 1;
        }
        self.judge_the_end(&mut verdict);
        self.judge_orders(&mut verdict);
        let accounts = self.accounts(&mut verdict);
        // Number of repeated fetches that each fault caused.
        let mut again = vec![0; self.faults.len()];
        for (page, account) in self.pages.iter().zip(&accounts) {
            self.judge_end(page, account, &mut verdict);
            self.judge_sinks(page, account, &mut verdict);
            self.judge_fetches(page, account, &mut verdict, &mut again);
        }
        for (fault, again) in self.faults.iter().zip(again) {
            let most = self.most_again(fault);
            if again > most {
                let (kind, from) = (fault.kind, fault.from.as_secs_f64());
                let text =
                    format!("{again} fetches were repeated, and only {most} URLs can have been in hand");
                verdict.problems.push(format!("{kind} at {from:.1} s: {text}"));
            }
        }
        self.judge_stats(&accounts, &mut verdict);
        self.judge_announcement(&mut verdict);
        self.judge_stalls(&mut verdict);
        verdict
    }

    /// Checks that the crawl ended, and not before its last page.
    fn judge_the_end(&self, verdict: &mut Judgement) {
        let Some(ended) = self.ended else {
            verdict.problems.push("the crawl did not end".to_owned());
            return;
        };
        let late: Vec<Ask> = self.asks.iter().filter(|ask| ask.asked > ended).copied().collect();
        if let Some(ask) = late.first() {
            let (url, count) = (&self.pages[ask.page].key, late.len());
            verdict.problems.push(format!("{count} pages were asked for after the end, the first {url}"));
        }
    }

    /// Collects the facts about each page. Facts that belong to no page are problems.
    fn accounts(&self, verdict: &mut Judgement) -> Vec<Account> {
        let mut accounts: Vec<Account> = self.pages.iter().map(|_| Account::default()).collect();
        let numbers: HashMap<&str, usize> =
            self.pages.iter().enumerate().map(|(number, page)| (page.key.as_str(), number)).collect();
        // The answer to a redirected request is not one of the page's own.
        for ask in self.asks.iter().filter(|ask| ask.via.is_none()) {
            accounts[ask.page].asks.push(*ask);
        }
        for (page, fate) in self.pages.iter().map(|page| page.fate).enumerate() {
            if let (Fate::Redirect(to), Units::Pages) = (fate, self.units) {
                accounts[to].is_landing = true;
                // The target may be requested with it.
                accounts[to].led_here += accounts[page].asks.len();
            }
        }
        self.collect_items(&numbers, &mut accounts, verdict);
        for dead_letter in self.dead_letters.iter().flatten() {
            match numbers.get(dead_letter.url.as_str()) {
                Some(&number) => accounts[number].dead_letters.insert(dead_letter.reason.clone()),
                None => {
                    let text = "a dead letter of a page that is not on the site";
                    verdict.problems.push(format!("{}: {text}", dead_letter.url));
                    continue;
                }
            };
        }
        accounts
    }

    /// Checks that the page has one terminal state, and the right one.
    fn judge_end(&self, page: &Page, account: &Account, verdict: &mut Judgement) {
        let Account { asks, items, dead_letters, stored, .. } = account;
        if items.len() > 1 {
            verdict.problems.push(format!("{}: its items have different ids", page.url));
        }
        let poisoned = dead_letters.contains("poison")
            && asks.iter().filter(|ask| self.explanation(ask, Duration::MAX).is_some()).count()
                >= MAX_STARTS as usize;
        let right = match (page.fate, self.units.dead_letter(page.fate)) {
            // Its target has an end of its own.
            (Fate::Redirect(_), _) if self.units == Units::Pages => {
                !asks.is_empty() && dead_letters.is_empty()
            }
            (_, None) => !stored.is_empty() && dead_letters.is_empty(),
            _ if self.dead_letters.is_none() => items.is_empty() && !asks.is_empty(),
            (_, Some(reason)) => items.is_empty() && dead_letters.contains(reason) && dead_letters.len() == 1,
        };
        if right || poisoned || self.may_be_left_out(account) {
            return;
        }
        if !account.is_settled() {
            if self.went_with_the_broker(account) || self.went_with_its_worker(account) {
                return;
            }
            let hit = asks.last().and_then(|ask| self.explanation(ask, Duration::MAX));
            let kind = hit.map(|index| self.faults[index].kind);
            verdict.row(kind).lost += 1;
        }
        verdict.problems.push(format!(
            "{} ({:?}): {} item(s), dead letters {dead_letters:?}, {}",
            page.key,
            page.fate,
            items.len(),
            describe(asks)
        ));
    }

    /// Whether a limit may have come before it, or before its next try.
    fn may_be_left_out(&self, account: &Account) -> bool {
        match self.limit {
            None => false,
            Some(Limit::Pages(_)) => !account.is_settled(),
            Some(Limit::PerHost(_)) => account.asks.is_empty() && !account.is_settled(),
        }
    }

    /// Whether its dead letter may have been lost with the broker's disk before it could be read.
    fn went_with_the_broker(&self, account: &Account) -> bool {
        account.asks.last().is_some_and(|ask| {
            self.overlapping(ask).iter().any(|index| self.faults[*index].kind == Kind::BrokerGone)
        })
    }

    /// Whether it was in a worker that died as Redis was emptied, and came through the lane whose messages are
    /// acknowledged when their fetch starts: there was no other trace of it.
    fn went_with_its_worker(&self, account: &Account) -> bool {
        account.asks.last().is_some_and(|ask| {
            let is_early = self.pages[ask.page].url.contains("/news/");
            let is_its =
                |fault: &Injected| fault.kind == Kind::WorkerKillFlushed && fault.victim == Some(ask.who);
            let settled = ask.answered.unwrap_or(ask.asked + HELD_BACK) + SETTLING;
            let is_hit = |fault: &&Injected| ask.asked <= fault.to && fault.from <= settled;
            is_early && self.faults.iter().filter(is_hit).any(is_its)
        })
    }

    /// Checks that the page was not fetched too often, except for fetches in flight at a fault.
    fn judge_fetches(&self, page: &Page, account: &Account, verdict: &mut Judgement, again: &mut [usize]) {
        let asks = &account.asks;
        let expected = self.units.tries(page.fate);
        let is_early = asks.len() < expected;
        let Some(extra) = (!is_early).then(|| asks.len().saturating_sub(expected + account.led_here)) else {
            if !account.dead_letters.contains("poison")
                && !account.dead_letters.is_empty() | !account.items.is_empty()
            {
                verdict.problems.push(format!(
                    "{} ({:?}): settled early, {}",
                    page.key,
                    page.fate,
                    describe(asks)
                ));
            }
            return;
        };
        // The last fetch needs no excuse; each of the others may have one.
        let earlier = &asks[..asks.len().saturating_sub(1)];
        let last = asks.last().map_or(Duration::ZERO, |ask| ask.asked);
        let excuses: Vec<usize> = earlier.iter().filter_map(|ask| self.explanation(ask, last)).collect();
        for fault in excuses.iter().take(extra) {
            verdict.row(Some(self.faults[*fault].kind)).again += 1;
            again[*fault] += 1;
        }
        let unexcused = extra.saturating_sub(excuses.len());
        if unexcused > 0 {
            verdict.row(None).again += unexcused;
            let text = "fetched again though no fault hit it";
            verdict.problems.push(format!("{} ({:?}): {text}, {}", page.key, page.fate, describe(asks)));
        }
    }

    /// Returns the maximum number of fetches that a fault may cause to be repeated. After a loss of Redis' memory only
    /// time bounds it.
    fn most_again(&self, fault: &Injected) -> usize {
        match fault.kind.subject() {
            _ if fault.kind.forgets() => usize::MAX,
            // URLs that wait for PostgreSQL stay in hand.
            Subject::Producer | Subject::Database => 0,
            // There are many pages that fail, and each gets all its tries again.
            Subject::Crawl => usize::MAX,
            Subject::Worker => self.in_hand,
            // Every worker dies twice.
            Subject::Broker if fault.kind == Kind::BrokerLimit => 2 * self.in_hand * self.workers,
            Subject::Store | Subject::Broker => self.in_hand * self.workers,
        }
    }

    /// Returns the fault before an instant that most likely caused the repetition of a fetch: one that took Redis'
    /// memory rather than one that took its worker, and that rather than one that hindered all; the latest of each.
    fn explanation(&self, ask: &Ask, before: Duration) -> Option<usize> {
        let likely = |index: &usize| {
            let fault = &self.faults[*index];
            (fault.kind.forgets(), fault.victim.is_some(), fault.from)
        };
        self.overlapping(ask)
            .into_iter()
            .filter(|index| self.faults[*index].from <= before)
            .max_by_key(likely)
    }

    /// Returns when a fetch had its answer (after redirects, the answer of the target), or was given up.
    fn answered(&self, ask: &Ask) -> Duration {
        let (fate, of) = (self.pages[ask.page].fate, ask.who);
        let given_up = if fate == Fate::Silent { TIMEOUT } else { HELD_BACK };
        let answered = ask.answered.unwrap_or(ask.asked + given_up);
        let Fate::Redirect(to) = fate else { return answered };
        let follows = |next: &&Ask| {
            let at_once = answered..=answered + SETTLING;
            next.page == to && next.who == of && at_once.contains(&next.asked)
        };
        self.asks.iter().find(follows).map_or(answered, |next| self.answered(next))
    }

    /// Returns the faults that hit a fetch between its request and its settlement.
    fn overlapping(&self, ask: &Ask) -> Vec<usize> {
        let mut settled = self.answered(ask) + SETTLING;
        let mut hits = Vec::new();
        for (index, fault) in self.faults.iter().enumerate() {
            let mine = fault.victim == Some(ask.who);
            let pause = fault.to.saturating_sub(fault.from).min(TRYING_AGAIN);
            // A page that is requested while the worker still waits to try again is settled after that.
            let hindered =
                ask.asked <= fault.to + pause + SETTLING && fault.from <= settled + fault.kind.reaches_back();
            let hit = match fault.kind.subject() {
                _ if fault.kind.empties_store() => ask.asked <= fault.to,
                Subject::Producer => false,
                Subject::Crawl => fault.kind.truncates_store() && hindered || self.begins_anew(ask, fault),
                // A worker that wakes still requests the pages that it had started on before it was stopped.
                Subject::Worker => mine && ask.asked <= fault.to + SETTLING && fault.from <= settled,
                Subject::Store | Subject::Broker | Subject::Database => hindered,
            };
            if !hit {
                continue;
            }
            // URLs that wait for PostgreSQL stay in hand: that is no reason to fetch them again, but another fault may
            // meet them meanwhile.
            if fault.kind.subject() != Subject::Database {
                hits.push(index);
            }
            if fault.from <= settled {
                // A hindered fetch is settled after the fault.
                settled = settled.max(fault.to + pause + SETTLING);
            }
        }
        hits
    }

    fn judge_stalls(&self, verdict: &mut Judgement) {
        let mut signs: Vec<Duration> =
            self.asks.iter().flat_map(|ask| [Some(ask.asked), ask.answered]).flatten().collect();
        signs.extend(self.ended);
        signs.sort_unstable();
        for (index, fault) in self.faults.iter().enumerate() {
            let until = self.faults.get(index + 1).map_or(Duration::MAX, |next| next.from);
            let first = signs.partition_point(|sign| *sign < fault.from);
            let mut before = fault.from;
            let mut longest = Duration::ZERO;
            for sign in &signs[first..] {
                longest = longest.max(sign.saturating_sub(before));
                before = *sign;
                if *sign >= until {
                    break;
                }
            }
            let row = verdict.row(Some(fault.kind));
            row.stall = row.stall.max(longest);
        }
    }
}

fn describe(asks: &[Ask]) -> String {
    let times: Vec<String> = asks
        .iter()
        .map(|ask| {
            let answered = ask.answered.map_or("-".to_owned(), |at| format!("{:.1}", at.as_secs_f64()));
            format!("{:.1}-{answered} by worker-{}", ask.asked.as_secs_f64(), ask.who)
        })
        .collect();
    format!("asked for {} times: {}", asks.len(), times.join(", "))
}
