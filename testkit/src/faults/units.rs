//! What a crawl consists of, and what becomes of each by its fate.

use super::fate::Fate;

/// How often what always fails is tried: once, and `retry.max` times again.
const TRIES: usize = 4;

/// What a crawl takes in, works on and counts: one for each page of its site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// Pages, by their URLs.
    #[default]
    Pages,
    /// Tasks, whose program asks for the page.
    Tasks,
    /// Requests, each with a body of its own; those that redirect share no page with where they lead.
    Requests,
}

impl Units {
    /// Whether one with this fate is a task that is not to be tried again.
    pub(super) fn is_last_try(self, fate: Fate) -> bool {
        self == Self::Tasks && matches!(fate, Fate::Missing | Fate::Silent)
    }

    /// How often one with this fate is asked for.
    pub(super) fn tries(self, fate: Fate) -> usize {
        match fate {
            Fate::Good | Fate::Missing | Fate::Redirect(_) => 1,
            Fate::Flaky(failures) => failures + 1,
            Fate::Silent if self.is_last_try(fate) => 1,
            Fate::Broken | Fate::Silent => TRIES,
        }
    }

    /// Why one with this fate is a dead letter, if it becomes one.
    pub(super) fn dead_letter(self, fate: Fate) -> Option<&'static str> {
        match fate {
            Fate::Good | Fate::Flaky(_) | Fate::Redirect(_) => None,
            Fate::Missing if self != Self::Tasks => Some("final"),
            Fate::Missing | Fate::Broken | Fate::Silent => Some("retries"),
        }
    }

    /// As what one with this fate counts.
    pub(super) fn ends(self, fate: Fate) -> &'static [&'static str] {
        match fate {
            Fate::Good | Fate::Flaky(_) => &["done"],
            Fate::Redirect(_) if self == Self::Pages => &["done", "skipped:duplicate"],
            Fate::Redirect(_) => &["done"],
            _ if self == Self::Tasks => &["failed:handler"],
            Fate::Missing | Fate::Broken => &["failed:http"],
            Fate::Silent => &["failed:timeout"],
        }
    }

    /// As what one counts that was put down as poison.
    pub(super) fn poisoned(self) -> &'static str {
        if self == Self::Tasks { "failed:handler" } else { "failed:parse" }
    }
}
