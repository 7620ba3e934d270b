//! URLs that wait because others hold the places that they need.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use trawl_common::web::host::HostKey;

/// The shortest and the longest time for which a URL is put off.
pub(super) const MIN_DELAY: Duration = Duration::from_secs(1);
pub(super) const MAX_DELAY: Duration = Duration::from_secs(600);

/// The time for which a place is kept for a URL that is late: another worker may have taken it.
const MAX_LATE: Duration = Duration::from_secs(2);

/// Schedules the return of URLs that found no free place: each after those before it, at the rate at which places
/// become free. A URL that finds none on its return either stays ahead of those that were put off after it.
#[derive(Default)]
pub(crate) struct PutOff {
    lines: HashMap<HostKey, Line>,
    /// The smoothed time for which a page keeps a place.
    kept_for: Duration,
}

/// The URLs of a domain that were put off.
struct Line {
    /// The instant at which the last one returns.
    last: Instant,
    /// The number of URLs that return at an instant, or less than [`MIN_DELAY`] after it, in order.
    due: VecDeque<(Instant, usize)>,
}

impl PutOff {
    /// Records that a place became free that was held for this time.
    pub(crate) fn comes_free(&mut self, kept_for: Duration) {
        self.kept_for = (self.kept_for * 7 + kept_for) / 8;
    }

    /// Returns how long a URL of `domain` has to stay away; the domain holds `of` of `places`. This is the time that
    /// its places need after the URL that was put off last, or that all places need for one URL of each waiting domain.
    /// If `is_back`, the URL was put off before, and waits only for those that are due as well. A domain whose speed is
    /// unknown counts as average, and its URLs return with the first of them.
    pub(crate) fn put_off(
        &mut self,
        domain: &HostKey,
        takes: Option<Duration>,
        of: usize,
        places: usize,
        is_back: bool,
    ) -> Duration {
        let now = Instant::now();
        self.lines.retain(|_, line| line.last + MAX_LATE > now);
        let domains = self.lines.len() + usize::from(!self.lines.contains_key(domain));
        let line = self.lines.entry(domain.clone()).or_insert_with(|| Line::new(now));
        let share = takes.unwrap_or(self.kept_for) / of.max(1) as u32;
        let step = share.max(self.kept_for * domains as u32 / places as u32);
        let returns = match is_back {
            true => {
                line.leave(now);
                now + step * (line.due_soon(now) + 1) as u32
            }
            false => line.last.max(now) + step,
        };
        // The first page of a domain shows how fast it is: the others need not wait for the places that it might need.
        let first = line.due.front().map(|(at, _)| (*at).max(now) + MAX_LATE).filter(|_| takes.is_none());
        let returns = first.map_or(returns, |first| returns.min(first));
        let returns = returns.clamp(now + MIN_DELAY, now + MAX_DELAY);
        line.join(returns);
        returns - now
    }

    /// Records that a URL of `domain` that was put off has found a place.
    pub(super) fn has_returned(&mut self, domain: &HostKey) {
        if let Some(line) = self.lines.get_mut(domain) {
            line.leave(Instant::now());
        }
    }

    /// Returns the number of URLs of `domain` that return within a second, or are late.
    pub(super) fn due_soon(&self, domain: &HostKey) -> usize {
        self.lines.get(domain).map_or(0, |line| line.due_soon(Instant::now()))
    }
}

impl Line {
    fn new(now: Instant) -> Self {
        Self { last: now, due: VecDeque::new() }
    }

    fn join(&mut self, returns: Instant) {
        self.last = self.last.max(returns);
        let after = self.due.partition_point(|(at, _)| *at <= returns);
        match after.checked_sub(1).and_then(|before| self.due.get_mut(before)) {
            Some((at, count)) if *at + MIN_DELAY > returns => *count += 1,
            _ => self.due.insert(after, (returns, 1)),
        }
    }

    /// Takes out the first URL that is due.
    fn leave(&mut self, now: Instant) {
        while self.due.front().is_some_and(|(at, _)| *at + MAX_LATE < now) {
            self.due.pop_front();
        }
        if let Some((_, count)) = self.due.front_mut().filter(|(at, _)| *at < now + MIN_DELAY) {
            *count -= 1;
            if *count == 0 {
                self.due.pop_front();
            }
        }
    }

    fn due_soon(&self, now: Instant) -> usize {
        let soon = self.due.iter().take_while(|(at, _)| *at < now + MIN_DELAY);
        soon.filter(|(at, _)| *at + MAX_LATE >= now).map(|(_, count)| count).sum()
    }
}
