//! Sitemaps are asked for as politely as pages: the limiters of this process's own requests.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use trawl_common::gcra::Pace;
use trawl_common::host::HostKey;
use trawl_common::settings::{Manners, Politeness};
use trawl_common::url::Host;

/// One limiter for each host, or for those that share a rate; none where there is no rate.
pub(crate) struct Gait {
    politeness: Politeness,
    limiters: HashMap<HostKey, Option<Arc<DefaultDirectRateLimiter>>>,
}

impl Gait {
    pub(crate) fn new(politeness: Politeness) -> Self {
        Self { politeness, limiters: HashMap::new() }
    }

    /// Completes when `host` may be asked.
    pub(crate) fn turn(&mut self, host: &Host) -> impl Future<Output = ()> + Send + use<> {
        let Manners { key, pace, .. } = self.politeness.manners(host);
        let limiter = self.limiters.entry(key).or_insert_with(|| limiter(pace).map(Arc::new)).clone();
        async move {
            if let Some(limiter) = limiter {
                limiter.until_ready().await;
            }
        }
    }
}

fn limiter(pace: Pace) -> Option<DefaultDirectRateLimiter> {
    let quota = Quota::with_period(pace.interval)?;
    Some(RateLimiter::direct(quota.allow_burst(NonZeroU32::new(pace.burst)?)))
}
