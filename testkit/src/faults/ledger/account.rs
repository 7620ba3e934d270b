//! What is known of one page.

use std::collections::BTreeSet;

use super::facts::Ask;
use crate::faults::scenario::Sink;

/// How often a page was asked for, and where an end of it shows.
#[derive(Default)]
pub(super) struct Account {
    pub(super) asks: Vec<Ask>,
    /// Whether a redirect leads to it, and how often one was asked for.
    pub(super) is_landing: bool,
    pub(super) led_here: usize,
    /// The ids of its items.
    pub(super) items: BTreeSet<String>,
    /// Where an item of it stands, or one of a page that redirects to it.
    pub(super) stored: BTreeSet<Sink>,
    /// The reasons of its dead letters.
    pub(super) dead_letters: BTreeSet<String>,
}

impl Account {
    /// Whether it has an end that can be seen.
    pub(super) fn is_settled(&self) -> bool {
        !self.stored.is_empty() || !self.items.is_empty() || !self.dead_letters.is_empty()
    }
}
