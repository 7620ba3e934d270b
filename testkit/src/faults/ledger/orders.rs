//! What must follow from an order, and what may.

use super::{Ask, Facts, Injected, Judgement, SETTLING};
use crate::faults::fate::Fate;
use crate::faults::kind::Kind;

impl Facts {
    /// While a crawl is held no fetch begins, and what is sent again is fetched.
    pub(super) fn judge_orders(&self, verdict: &mut Judgement) {
        for quiet in &self.quiet {
            let is_late = |ask: &&Ask| ask.asked > quiet.from + SETTLING && ask.asked < quiet.to;
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

    /// Whether an order sends a page again after this fetch, with no failure counted.
    pub(super) fn begins_anew(&self, ask: &Ask, order: &Injected) -> bool {
        let page = &self.pages[ask.page];
        let is_it = |at| (order.from..=order.to).contains(&at);
        match order.kind {
            Kind::DeadLettersReplayed => {
                self.replays.iter().any(|replay| is_it(replay.at) && replay.url == page.key)
            }
            // It may have been skipped between two tries.
            Kind::HostBlocked => page.fate == Fate::Broken,
            _ => false,
        }
    }
}
