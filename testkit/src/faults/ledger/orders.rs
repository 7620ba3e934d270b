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
            let count = self.asks.iter().filter(is_late).count();
            if count > 0 {
                let (why, from) = (quiet.why, quiet.from.as_secs_f64());
                verdict.problems.push(format!("{count} pages were asked for while {why} from {from:.1} s"));
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

    /// Whether this request follows a redirect of one that had started before a pause: it may complete. A blocked host
    /// is not requested at all.
    fn was_led(&self, ask: &Ask, why: &str, begun: Duration) -> bool {
        let is_first =
            |first: &Ask| Some(first.page) == ask.via && first.who == ask.who && first.asked < begun;
        why == "paused" && self.asks.iter().any(is_first)
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
