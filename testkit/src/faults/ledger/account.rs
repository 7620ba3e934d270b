//! The facts about one page.

use std::collections::BTreeSet;

use super::facts::Ask;
use crate::faults::scenario::Sink;

/// The requests for a page, and the traces of its end.
#[derive(Default)]
pub(super) struct Account {
    pub(super) asks: Vec<Ask>,
    /// Whether a redirect leads to it, and the number of requests for such redirects.
    pub(super) is_landing: bool,
    pub(super) led_here: usize,
    /// The ids of its items.
    pub(super) items: BTreeSet<String>,
    /// The sinks with an item of it, or of a page that redirects to it.
    pub(super) stored: BTreeSet<Sink>,
    /// The reasons of its dead letters.
    pub(super) dead_letters: BTreeSet<String>,
}

impl Account {
    /// Whether it has a visible end.
    pub(super) fn is_settled(&self) -> bool {
        !self.stored.is_empty() || !self.items.is_empty() || !self.dead_letters.is_empty()
    }
}
