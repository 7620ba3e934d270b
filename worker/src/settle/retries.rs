//! Spreads retries over time. A page can name thousands of hosts that do not exist, and each of its URLs is retried: all
//! at once, they would keep the URLs of other sites from coming back when they are due.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trawl_common::web::host::HostKey;

/// Time between two looks for domains without retries to come.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of domains whose retries are spread.
const MAX_DOMAINS: usize = 100_000;

/// The retries to come.
#[derive(Default)]
pub(crate) struct Retries(Mutex<Lasts>);

/// Kept by a clock that nobody sets.
#[derive(Default)]
struct Lasts {
    /// The time of the last retry that is to come, by the domain that led to its URL.
    by_domain: HashMap<HostKey, Instant>,
    checked: Option<Instant>,
}

impl Retries {
    /// Returns the delay before the retry of a URL to which a page of `domain` has led: `backoff`, or longer until its
    /// domain's share of all retries allows it, of which there is one in each `interval`.
    pub(super) fn space(
        &self,
        domain: HostKey,
        backoff: Duration,
        interval: Duration,
        now: Instant,
    ) -> Duration {
        let mut lasts = self.0.lock();
        if lasts.checked.is_none_or(|checked| checked + CHECK_INTERVAL <= now) {
            lasts.by_domain.retain(|_, last| *last > now);
            lasts.checked = Some(now);
        }
        let interval = interval * lasts.by_domain.len() as u32;
        let due = now + backoff;
        match lasts.by_domain.get_mut(&domain) {
            Some(last) => {
                *last = due.max(*last + interval);
                *last - now
            }
            None => {
                if lasts.by_domain.len() < MAX_DOMAINS {
                    lasts.by_domain.insert(domain, due);
                }
                backoff
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const INTERVAL: Duration = Duration::from_millis(2);

    fn space(retries: &Retries, number: usize, backoff: Duration, now: Instant) -> Duration {
        retries.space(HostKey::from_text(&format!("site{number}.example")), backoff, INTERVAL, now)
    }

    #[test]
    fn a_domain_with_few_retries_has_them_when_they_are_due() {
        let (retries, now) = (Retries::default(), Instant::now());
        for number in 0..10 {
            assert_eq!(space(&retries, number, SECOND, now), SECOND);
        }
        assert_eq!(space(&retries, 0, 2 * SECOND, now), 2 * SECOND);
    }

    #[test]
    fn a_domain_with_thousands_of_retries_delays_those_of_no_other() {
        let (retries, now) = (Retries::default(), Instant::now());
        let last = (0..5_000).map(|_| space(&retries, 0, SECOND, now)).last();
        assert_eq!(last, Some(SECOND + INTERVAL * 4_999));
        assert_eq!(space(&retries, 1, SECOND, now), SECOND);
    }

    #[test]
    fn many_domains_share_the_rate_of_retries() {
        let (retries, now) = (Retries::default(), Instant::now());
        for number in 0..10 {
            space(&retries, number, SECOND, now);
        }
        assert_eq!(space(&retries, 0, SECOND, now), SECOND + INTERVAL * 10);
        let later = now + 3 * SECOND;
        assert_eq!(space(&retries, 0, Duration::ZERO, later), Duration::ZERO, "the others' have come");
        assert_eq!(space(&retries, 0, Duration::ZERO, later), INTERVAL);
    }
}
