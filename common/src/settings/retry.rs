//! `[retry]`: which failures are tried again, and how often.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;
use crate::frontier::outcome::Class;

/// `[retry]`
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
    /// Returns how long the failure to read a robots.txt is cached, by the fleet and then once more in a worker's
    /// memory. Together that is less than a URL waits for its next attempt, so that each attempt gets a new
    /// answer.
    pub fn robots_again(&self) -> Duration {
        (self.backoff / 5).max(Duration::from_millis(50))
    }
}
