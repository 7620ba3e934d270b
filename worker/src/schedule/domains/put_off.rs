//! URLs that wait because others hold the places that they need.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use trawl_common::web::host::HostKey;

/// The shortest and the longest time for which a URL is put off.
pub(super) const MIN_DELAY: Duration = Duration::from_secs(1);
pub(super) const MAX_DELAY: Duration = Duration::from_secs(600);

/// Schedules the return of URLs that found no free place: each after those before it, at the rate at which places become free.
#[derive(Default)]
pub(crate) struct PutOff {
    /// The instant at which the last URL of each domain returns.
    last: HashMap<HostKey, Instant>,
    /// The smoothed time for which a page keeps a place.
    kept_for: Duration,
}

impl PutOff {
    /// Records that a place became free that was held for this time.
    pub(crate) fn comes_free(&mut self, kept_for: Duration) {
        self.kept_for = (self.kept_for * 7 + kept_for) / 8;
    }

    /// Returns how long a URL of `domain` has to stay away; the domain holds `of` of `places`. This is the time that its
    /// places need after the URL that was put off last, or that all places need for one URL of each waiting domain. A
    /// domain whose speed is unknown counts as average.
    pub(crate) fn put_off(
        &mut self,
        domain: &HostKey,
        takes: Option<Duration>,
        of: usize,
        places: usize,
    ) -> Duration {
        let now = Instant::now();
        self.last.retain(|_, last| *last > now);
        let last = self.last.get(domain).copied();
        let domains = self.last.len() + usize::from(last.is_none());
        let share = takes.unwrap_or(self.kept_for) / of.max(1) as u32;
        let round = self.kept_for * domains as u32 / places as u32;
        let comes_back = (last.unwrap_or(now) + share.max(round)).clamp(now + MIN_DELAY, now + MAX_DELAY);
        self.last.insert(domain.clone(), comes_back);
        comes_back - now
    }
}
