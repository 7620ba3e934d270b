//! Checks the effects of orders.

use std::time::Duration;

use super::{Ask, Facts, Injected, Judgement, SETTLING};
use crate::faults::fate::{Fate, HELD_BACK};
use crate::faults::kind::Kind;

impl Facts {
    /// Checks that no fetch starts while a crawl is held, and that replayed dead letters are fetched.
    pub(super) fn judge_orders(&self, verdict: &mut Judgement) {
        for quiet in &self.quiet {
            let begun = quiet.from + SETTLING;
            let is_late =
                |ask: &&Ask| (begun..quiet.to).contains(&ask.asked) && !self.was_led(ask, quiet.why, begun);
            let late: Vec<&Ask> = self.asks.iter().filter(is_late).collect();
            if let Some(first) = late.iter().min_by_key(|ask| ask.asked) {
                let (count, why, from) = (late.len(), quiet.why, quiet.from.as_secs_f64());
                let (page, who, at) = (&self.pages[first.page].key, first.who, first.asked.as_secs_f64());
                verdict.problems.push(format!(
                    "{count} pages were asked for while {why} from {from:.1} s, the first by worker {who} at {at:.1} s: {page}"
                ));
            }
        }
        for replay in &self.replays {
            let is_own = |ask: &Ask| self.pages[ask.page].key == replay.url && ask.via.is_none();
            let is_it = |ask: &&Ask| is_own(ask) && ask.asked > replay.at;
            let is_forgotten = |fault: &Injected| fault.kind.forgets() && fault.to > replay.at;
            if !self.asks.iter().any(|ask| is_it(&ask)) && !self.faults.iter().any(is_forgotten) {
                let at = replay.at.as_secs_f64();
                verdict.problems.push(format!("{}: sent again at {at:.1} s, and not asked for", replay.url));
            }
        }
    }

    /// Whether this request follows redirects of one that had started before a pause: it may complete. A blocked host
    /// is not requested at all.
    fn was_led(&self, ask: &Ask, why: &str, begun: Duration) -> bool {
        let mut before = self.asks.iter().filter(|first| self.leads_to(first, ask));
        why == "paused" && before.any(|first| first.asked < begun || self.was_led(first, why, begun))
    }

    /// Whether a request may be the redirect of an earlier one. Those of plain pages do not say which it was.
    fn leads_to(&self, first: &Ask, ask: &Ask) -> bool {
        let is_target = match ask.via {
            Some(via) => via == first.page,
            None => self.pages[first.page].fate == Fate::Redirect(ask.page),
        };
        is_target && first.who == ask.who && first.asked < ask.asked
    }

    /// Whether an order makes a page be fetched again after this fetch: it resets its failures, or lets the pages of
    /// another crawl's host take its place.
    pub(super) fn begins_anew(&self, ask: &Ask, order: &Injected) -> bool {
        let page = &self.pages[ask.page];
        let is_it = |at| (order.from..=order.to).contains(&at);
        match order.kind {
            // A page that the site held back may have had to give way to those of the other crawl's host, which holds
            // its own back as well.
            Kind::OtherCancelled | Kind::StoreTruncatedAfterCancel | Kind::OtherStuck | Kind::OtherFull => {
                let meet = ask.asked <= order.to + HELD_BACK && order.from <= ask.asked + HELD_BACK;
                ask.answered.is_none() && meet
            }
            _ if ask.asked > order.to => false,
            Kind::DeadLettersReplayed => {
                self.replays.iter().any(|replay| is_it(replay.at) && replay.url == page.key)
            }
            // It may have been skipped between two tries, or before its redirect was followed.
            kind if kind.blocks_host() => matches!(page.fate, Fate::Broken | Fate::Redirect(_)),
            _ => false,
        }
    }
}
