//! Spreads retries over time. A page can name thousands of hosts that do not exist, and each of its URLs is retried: all
//! at once, they would keep the URLs of other sites from coming back when they are due.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

/// Time between two looks for domains without retries to come.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of domains whose retries are spread.
const MAX_DOMAINS: usize = 100_000;

/// The retries to come.
#[derive(Default)]
pub(crate) struct Retries(Mutex<Lasts>);

#[derive(Default)]
struct Lasts {
    /// The time of the last retry that is to come, by the domain that led to its URL.
    by_domain: HashMap<HostKey, UnixMs>,
    checked: UnixMs,
}

impl Retries {
    /// Returns when a URL is retried to which a page of `domain` has led, and which is due at `until`: then, or when its
    /// domain's share of all retries allows, of which there is one in each `interval`.
    pub(super) fn space(&self, domain: HostKey, until: UnixMs, interval: Duration, now: UnixMs) -> UnixMs {
        let mut lasts = self.0.lock();
        if lasts.checked.plus(CHECK_INTERVAL) <= now {
            lasts.by_domain.retain(|_, last| *last > now);
            lasts.checked = now;
        }
        let interval = interval * lasts.by_domain.len() as u32;
        match lasts.by_domain.get_mut(&domain) {
            Some(last) => {
                *last = until.max(last.plus(interval));
                *last
            }
            None => {
                if lasts.by_domain.len() < MAX_DOMAINS {
                    lasts.by_domain.insert(domain, until);
                }
                until
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs(1_000_000);
    const SECOND: Duration = Duration::from_secs(1);
    const INTERVAL: Duration = Duration::from_millis(2);

    fn space(retries: &Retries, number: usize, until: UnixMs, now: UnixMs) -> UnixMs {
        retries.space(HostKey::from_text(&format!("site{number}.example")), until, INTERVAL, now)
    }

    #[test]
    fn a_domain_with_few_retries_has_them_when_they_are_due() {
        let retries = Retries::default();
        for number in 0..10 {
            assert_eq!(space(&retries, number, NOW.plus(SECOND), NOW), NOW.plus(SECOND));
        }
        let due = NOW.plus(2 * SECOND);
        assert_eq!(space(&retries, 0, due, NOW), due);
    }

    #[test]
    fn a_domain_with_thousands_of_retries_delays_those_of_no_other() {
        let retries = Retries::default();
        let due = NOW.plus(SECOND);
        let last = (0..5_000).map(|_| space(&retries, 0, due, NOW)).last();
        assert_eq!(last, Some(due.plus(INTERVAL * 4_999)));
        assert_eq!(space(&retries, 1, due, NOW), due);
    }

    #[test]
    fn many_domains_share_the_rate_of_retries() {
        let retries = Retries::default();
        let due = NOW.plus(SECOND);
        for number in 0..10 {
            space(&retries, number, due, NOW);
        }
        assert_eq!(space(&retries, 0, due, NOW), due.plus(INTERVAL * 10));
        let later = NOW.plus(3 * SECOND);
        assert_eq!(space(&retries, 0, later, later), later, "the others' have come");
        assert_eq!(space(&retries, 0, later, later), later.plus(INTERVAL));
    }
}
