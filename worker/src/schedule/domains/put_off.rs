//! URLs that wait because others hold the places that they need.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use crate::claimed::ClaimedUrl;
use crate::claimed::settlement::Settlement;

/// The shortest time for which a URL is put off.
pub(super) const MIN_WAIT: Duration = Duration::from_secs(1);

/// The longest time for which a URL is put off while few are: a domain may be quick again at any moment.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of URLs whose positions are remembered. Any others come after them.
const MAX_IN_LINES: usize = 100_000;

/// The time for which a place is kept for a URL that is late: another worker may have taken it.
const MAX_LATE: Duration = Duration::from_secs(2);

/// A URL that was put off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Away {
    /// The time at which it was put off first: it comes before those that were put off later.
    pub(crate) since: UnixMs,
    /// The time for which it has to stay away.
    pub(crate) wait: Duration,
}

impl Away {
    /// The time until which it stays away.
    pub(crate) fn until(self) -> UnixMs {
        UnixMs::now().plus(self.wait)
    }

    /// Returns the settlement of the URL.
    pub(crate) fn settle(self, mut claimed: ClaimedUrl) -> Settlement {
        claimed.message.since = Some(self.since);
        Settlement::snooze(claimed, self.until())
    }
}

/// The rates by which it is computed when a URL returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinePace {
    /// The time that a page of its domain takes, if known.
    pub(crate) takes: Option<Duration>,
    /// Number of places that its domain holds.
    pub(crate) of: usize,
    /// Number of places.
    pub(crate) places: usize,
    /// The least time between two URLs that return, on average.
    pub(crate) interval: Duration,
}

/// Schedules the return of URLs that found no free place: each when the places have served those before it, at the rate
/// at which they become free now. As this rate may rise, none stays away for long: a URL that returns too early is put
/// off again, and keeps its position in the line of its domain.
#[derive(Default)]
pub(crate) struct PutOff {
    lines: HashMap<HostKey, Line>,
    /// Number of URLs in all lines, at most [`MAX_IN_LINES`].
    count: usize,
    /// The time of the URL that was put off last, of which each has one of its own.
    last: Option<UnixMs>,
    /// The smoothed time for which a page keeps a place.
    kept_for: Duration,
    /// The time at which those that are late were last forgotten.
    forgot_late: Option<Instant>,
}

/// The URLs of a domain that were put off, in the order in which they first were.
#[derive(Default)]
struct Line(VecDeque<Waiting>);

/// A URL in a line.
struct Waiting {
    since: UnixMs,
    returns: Instant,
}

impl PutOff {
    /// Records that a place became free that was held for this time.
    pub(crate) fn note_free(&mut self, kept_for: Duration) {
        self.kept_for = (self.kept_for * 7 + kept_for) / 8;
    }

    /// Puts a URL of `domain` off, for the first time or again if it is so `since` some time. It waits for its
    /// position in its domain's line times a step: the time in which a place of the domain becomes free or, if longer, any
    /// place for each waiting domain, at least `interval`.
    pub(crate) fn put_off(&mut self, domain: &HostKey, since: Option<UnixMs>, pace: LinePace) -> Away {
        let LinePace { takes, of, places, interval } = pace;
        let now = Instant::now();
        self.forget_late(now);
        if let Some(since) = since {
            self.has_returned(domain, since);
        }
        let since = since.unwrap_or_else(|| self.next());
        let (rank, domains) = match self.lines.get(domain) {
            Some(line) => (line.rank(since), self.lines.len()),
            None => (0, self.lines.len() + 1),
        };
        let share = takes.unwrap_or(self.kept_for) / of.max(1) as u32;
        let of_all = (self.kept_for / places as u32).max(interval);
        let step = share.max(of_all * domains as u32);
        let longest = MAX_WAIT.max(interval * self.count as u32);
        let wait = (step * (rank + 1) as u32).clamp(MIN_WAIT, longest);
        if self.count < MAX_IN_LINES {
            let line = self.lines.entry(domain.clone()).or_default();
            line.0.insert(rank, Waiting { since, returns: now + wait });
            self.count += 1;
        }
        Away { since, wait }
    }

    /// Records that a URL of `domain` is back that was put off `since` then.
    pub(super) fn has_returned(&mut self, domain: &HostKey, since: UnixMs) {
        let Some(line) = self.lines.get_mut(domain) else { return };
        let at = line.rank(since).checked_sub(1);
        if let Some(at) = at.filter(|at| line.0[*at].since == since) {
            line.0.remove(at);
            self.count -= 1;
        }
        if line.0.is_empty() {
            self.lines.remove(domain);
        }
    }

    /// Returns the number of the `first` URLs of `domain` that return within a second, or are late: places are left for
    /// them. A URL that has been put off `since` then, and is one of them, comes after none.
    pub(super) fn ahead(&self, domain: &HostKey, since: Option<UnixMs>, first: usize) -> usize {
        let now = Instant::now();
        let Some(line) = self.lines.get(domain) else { return 0 };
        if since.is_some_and(|since| line.rank(since) <= first) {
            return 0;
        }
        line.0.iter().take(first).filter(|waiting| waiting.is_due_soon(now)).count()
    }

    /// Returns the time of a URL that is put off now: after all others.
    fn next(&mut self) -> UnixMs {
        let after = self.last.map(|last| UnixMs(last.0 + 1));
        let now = UnixMs::now();
        *self.last.insert(after.map_or(now, |after| after.max(now)))
    }

    /// Forgets URLs that have not returned in time, now and then.
    fn forget_late(&mut self, now: Instant) {
        if self.forgot_late.is_some_and(|then| now < then + MAX_LATE / 2) {
            return;
        }
        self.forgot_late = Some(now);
        self.lines.retain(|_, line| {
            line.0.retain(|waiting| waiting.returns + MAX_LATE >= now);
            !line.0.is_empty()
        });
        self.count = self.lines.values().map(|line| line.0.len()).sum();
    }
}

impl Line {
    /// Returns the position of a URL that has been put off `since` then: after all others of that time.
    fn rank(&self, since: UnixMs) -> usize {
        self.0.partition_point(|waiting| waiting.since <= since)
    }
}

impl Waiting {
    fn is_due_soon(&self, now: Instant) -> bool {
        self.returns < now + MIN_WAIT && self.returns + MAX_LATE >= now
    }
}
