//! The retry policy: which failures are tried again, when, and which are final.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;
use crate::frontier::outcome::{Class, Failure, Outcome, Reason};
use crate::time::UnixMs;

/// `[retry]`: which failures are tried again, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Maximum number of retries of a URL after its first failure.
    pub max: u32,
    /// The HTTP statuses that are worth another try; all others except successes are final.
    pub statuses: Vec<u16>,
    /// The kinds of error that are worth another try; all others are final.
    pub errors: Vec<Class>,
    /// Maximum wait before the first retry; it doubles with each. A `Retry-After` is obeyed, up to 24 h.
    #[serde(with = "duration")]
    pub backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max: 3,
            statuses: vec![408, 425, 429, 500, 502, 503, 504],
            errors: vec![Class::Timeout, Class::Dns, Class::Connect, Class::Tls, Class::Body, Class::Robots],
            backoff: Duration::from_secs(10),
        }
    }
}

impl Retry {
    /// Returns the policy with this maximum number of retries, if there is one.
    #[must_use]
    pub fn with_max(self, max: Option<u32>) -> Self {
        Self { max: max.unwrap_or(self.max), ..self }
    }

    /// Returns how long the failure to read a robots.txt is cached, by the fleet and then once more in a worker's
    /// memory. Together that is less than a URL waits for its next attempt, so that each attempt gets a new
    /// answer.
    pub fn robots_again(&self) -> Duration {
        (self.backoff / 5).max(Duration::from_millis(50))
    }
}

/// Decides what happens to a URL whose attempt number `attempts` (1 for the first) ended in `failure`.
///
/// `jitter` in `0.0..1.0` spreads the retries of a wave of failures.
pub fn decide(policy: &Retry, failure: Failure, attempts: u32, now: UnixMs, jitter: f64) -> Outcome {
    if is_final(policy, &failure) {
        return Outcome::Failed(failure, Reason::Final);
    }
    again(policy, failure, attempts, now, jitter)
}

/// Like [`decide`], for a failure that a spider's file declares worth another try, whatever the policy says of its
/// kind.
pub fn again(policy: &Retry, failure: Failure, attempts: u32, now: UnixMs, jitter: f64) -> Outcome {
    if attempts > policy.max {
        return Outcome::Failed(failure, Reason::Retries);
    }
    let wait = failure.retry_after.unwrap_or_default().max(backoff(policy, attempts, jitter)).min(MAX_DELAY);
    Outcome::Retry { failure, until: now.plus(wait), max: policy.max }
}

/// The longest wait after a failure, whatever the server asks for.
pub const MAX_DELAY: Duration = Duration::from_secs(24 * 3600);

fn is_final(policy: &Retry, failure: &Failure) -> bool {
    match failure.status {
        Some(status) if failure.class == Class::Http => !policy.statuses.contains(&status),
        _ => !policy.errors.contains(&failure.class),
    }
}

/// Returns a wait that doubles with every attempt, drawn from the upper half: `[2^(n-1), 2^n) * base / 2`.
fn backoff(policy: &Retry, attempts: u32, jitter: f64) -> Duration {
    let ceiling = policy.backoff * 2u32.saturating_pow(attempts.saturating_sub(1).min(16));
    ceiling.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs(1_000_000);

    fn http(status: u16) -> Failure {
        Failure { status: Some(status), ..Failure::new(Class::Http, status) }
    }

    fn wait(outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Retry { until, .. } => until.0 - NOW.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_url_is_tried_once_and_retried_three_times() {
        let policy = Retry::default();
        for attempt in 1..=3 {
            assert!(matches!(decide(&policy, http(500), attempt, NOW, 0.5), Outcome::Retry { .. }));
        }
        assert!(matches!(decide(&policy, http(500), 4, NOW, 0.5), Outcome::Failed(_, Reason::Retries)));
    }

    #[test]
    fn what_a_spider_has_tried_again_is_tried_as_often() {
        let failure = || Failure::new(Class::Missing, "`price` is missing");
        assert!(matches!(
            decide(&Retry::default(), failure(), 1, NOW, 0.5),
            Outcome::Failed(_, Reason::Final)
        ));
        assert!(matches!(again(&Retry::default(), failure(), 3, NOW, 0.5), Outcome::Retry { .. }));
        let last = again(&Retry::default(), failure(), 4, NOW, 0.5);
        assert!(matches!(last, Outcome::Failed(_, Reason::Retries)));
    }

    #[test]
    fn not_found_is_final_at_once() {
        for status in [404, 410, 403] {
            let outcome = decide(&Retry::default(), http(status), 1, NOW, 0.5);
            assert!(matches!(outcome, Outcome::Failed(_, Reason::Final)), "{status}");
        }
    }

    #[test]
    fn which_errors_are_worth_another_try_is_a_setting() {
        let policy = Retry { errors: vec![Class::Timeout, Class::Parse], ..Retry::default() };
        let is_final = |class| {
            matches!(
                decide(&policy, Failure::new(class, "no"), 1, NOW, 0.5),
                Outcome::Failed(_, Reason::Final)
            )
        };
        assert_eq!(
            [Class::Timeout, Class::Parse, Class::Dns, Class::Size].map(is_final),
            [false, false, true, true]
        );
        let by_default = |class| !Retry::default().errors.contains(&class);
        assert_eq!(
            [Class::Dns, Class::Body, Class::Size, Class::Forbidden].map(by_default),
            [false, false, true, true]
        );
    }

    #[test]
    fn the_wait_doubles_and_never_leaves_its_half() {
        let policy = Retry { backoff: Duration::from_secs(10), ..Retry::default() };
        let failure = || Failure::new(Class::Timeout, "no answer");
        assert_eq!(wait(decide(&policy, failure(), 1, NOW, 0.0)), 5_000);
        assert_eq!(wait(decide(&policy, failure(), 1, NOW, 1.0)), 10_000);
        assert_eq!(wait(decide(&policy, failure(), 3, NOW, 1.0)), 40_000);
    }

    #[test]
    fn what_the_server_asks_for_is_honoured_up_to_a_day() {
        let asks = |seconds| Failure { retry_after: Some(Duration::from_secs(seconds)), ..http(503) };
        assert_eq!(wait(decide(&Retry::default(), asks(3_600), 1, NOW, 0.0)), 3_600_000);
        assert_eq!(wait(decide(&Retry::default(), asks(u64::MAX / 2_000), 1, NOW, 0.0)), 86_400_000);
    }
}
