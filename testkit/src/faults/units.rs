//! The kind of work of a crawl, and the end of each unit by its fate.

use super::fate::Fate;

/// Number of tries of a unit that always fails: the first, and `retry.max` more.
const TRIES: usize = 4;

/// The units that a crawl works on and counts, one for each page of its site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// Pages, by their URLs.
    #[default]
    Pages,
    /// Tasks, whose program requests the page.
    Tasks,
    /// Requests, each with a body of its own. One that redirects shares no page with its target.
    Requests,
}

impl Units {
    /// Whether a unit with this fate is a task that must not be tried again.
    pub(super) fn is_last_try(self, fate: Fate) -> bool {
        self == Self::Tasks && matches!(fate, Fate::Missing | Fate::Silent)
    }

    /// Returns the number of requests for a unit with this fate.
    pub(super) fn tries(self, fate: Fate) -> usize {
        match fate {
            Fate::Good | Fate::Missing | Fate::Redirect(_) => 1,
            Fate::Flaky(failures) => failures + 1,
            Fate::Silent if self.is_last_try(fate) => 1,
            Fate::Broken | Fate::Silent => TRIES,
        }
    }

    /// Returns the reason of the dead letter of a unit with this fate, or `None` if it has none.
    pub(super) fn dead_letter(self, fate: Fate) -> Option<&'static str> {
        match fate {
            Fate::Good | Fate::Flaky(_) | Fate::Redirect(_) => None,
            Fate::Missing if self != Self::Tasks => Some("final"),
            Fate::Missing | Fate::Broken | Fate::Silent => Some("retries"),
        }
    }

    /// Returns the reasons that a unit with this fate may be counted under.
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

    /// Returns the reason that a unit given up as poison is counted under.
    pub(super) fn poisoned(self) -> &'static str {
        if self == Self::Tasks { "failed:handler" } else { "failed:parse" }
    }
}
