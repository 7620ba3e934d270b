//! URLs that are put off because others keep what they need.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use trawl_common::web::host::HostKey;

/// A URL that is put off comes back after this time at the earliest, and none later than the other.
pub(super) const AWAY: Duration = Duration::from_secs(1);
pub(super) const LONGEST: Duration = Duration::from_secs(600);

/// When URLs come back that found none of some places free: each when those before it have had theirs, at the speed that they come free.
#[derive(Default)]
pub(super) struct PutOff {
    /// When the last of a domain comes back.
    last: HashMap<HostKey, Instant>,
    /// How long one keeps a place, smoothed.
    kept_for: Duration,
}

impl PutOff {
    /// Notes that a place comes free that was kept for this time.
    pub(super) fn comes_free(&mut self, kept_for: Duration) {
        self.kept_for = (self.kept_for * 7 + kept_for) / 8;
    }

    /// How long a URL of `domain` is to stay away, of `places` has `of`: the time that these need for it after the last one that was put off,
    /// or that all places need for one of each domain that has some put off. Where it is not known how long one takes, it is as long as usual.
    pub(super) fn put_off(
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
        let comes_back = (last.unwrap_or(now) + share.max(round)).clamp(now + AWAY, now + LONGEST);
        self.last.insert(domain.clone(), comes_back);
        comes_back - now
    }
}
