//! Limits on the rate of requests, and on the time of a response.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use tokio::time::Instant;
use trawl_common::names::{CallerName, RunnerName};

use crate::problem::{Kind, Problem};

/// Maximum number of requests of one caller per second.
const MAX_RATE: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// Maximum number of requests of one caller in a burst.
const MAX_BURST: NonZeroU32 = NonZeroU32::new(500).unwrap();
/// Maximum number of calls of one runner per second, and in a burst.
const MAX_RUNNER_RATE: (NonZeroU32, NonZeroU32) =
    (NonZeroU32::new(300).unwrap(), NonZeroU32::new(1000).unwrap());
/// Maximum number of calls of Git servers at one address per minute: each may ask a repository.
const MAX_HOOKS: NonZeroU32 = NonZeroU32::new(30).unwrap();
/// Maximum number of unknown tokens from one address per minute.
const MAX_UNKNOWN_TOKENS: NonZeroU32 = NonZeroU32::new(10).unwrap();
/// The number of tracked callers above which idle ones are removed.
const MAX_CALLERS: usize = 10_000;
/// Maximum time until a response begins: longer than the longest wait for a crawl.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(90);

/// A caller whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// The holder of a token.
    Named(CallerName),
    /// A runner with its key.
    Runner(RunnerName),
    /// Anyone at this address without a known token.
    Address(IpAddr),
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => name.fmt(f),
            Self::Runner(name) => write!(f, "the runner {name}"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl Caller {
    /// Returns the caller to count this one as: all addresses that a single caller may have count as one,
    /// namely all loopback addresses, and for IPv6 a /64.
    pub(crate) fn counted(&self) -> Self {
        match self {
            Self::Address(address) if address.is_loopback() => Self::Address(Ipv4Addr::LOCALHOST.into()),
            Self::Address(IpAddr::V6(address)) => {
                Self::Address(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into())
            }
            other => other.clone(),
        }
    }
}

/// The recent rate of each caller.
pub(crate) struct Rates {
    limiter: RateLimiter<Caller, HashMapStateStore<Caller>, RuntimeClock, NoOpMiddleware<Duration>>,
    /// The limit, in words.
    allowance: String,
}

impl Rates {
    /// Returns the limits on requests.
    pub(crate) fn of_requests() -> Self {
        Self::new(
            Quota::per_second(MAX_RATE).allow_burst(MAX_BURST),
            format!("ask {MAX_RATE} times a second"),
        )
    }

    /// Returns the limits on calls of runners.
    pub(crate) fn of_runners() -> Self {
        let (rate, burst) = MAX_RUNNER_RATE;
        Self::new(Quota::per_second(rate).allow_burst(burst), format!("call {rate} times a second"))
    }

    /// Returns the limits on calls of Git servers.
    pub(crate) fn of_hooks() -> Self {
        Self::new(Quota::per_minute(MAX_HOOKS), format!("call {MAX_HOOKS} times a minute"))
    }

    /// Returns the limits on attempts with unknown tokens.
    pub(crate) fn of_tokens() -> Self {
        Self::new(Quota::per_minute(MAX_UNKNOWN_TOKENS), format!("try {MAX_UNKNOWN_TOKENS} tokens a minute"))
    }

    fn new(quota: Quota, allowance: String) -> Self {
        Self { limiter: RateLimiter::hashmap_with_clock(quota, RuntimeClock(Instant::now())), allowance }
    }

    /// Counts an action of `caller`, or fails with the time after which it may be repeated.
    pub(crate) fn check(&self, caller: &Caller) -> Result<(), Problem> {
        if self.limiter.len() > MAX_CALLERS {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&caller.counted()).map_err(|until| {
            let wait = until.wait_time_from(self.limiter.clock().now());
            let detail = format!("{caller} may {}", self.allowance);
            Problem::new(Kind::TooManyRequests, detail).retry_after(wait.as_secs() + 1)
        })
    }
}

/// The time since an instant, by the runtime's clock: a test can pause it, however long its work takes.
#[derive(Clone)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Aborts requests that take too long.
pub(crate) async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(RESPONSE_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = "it may yet have been done in part: look, and ask again";
            Problem::new(Kind::Timeout, detail).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_is_slowed_down_and_another_is_not() {
        let rates = Rates::of_requests();
        let [one, other] = ["a", "b"].map(|name| Caller::Named(name.parse().unwrap()));
        let passed = (0..2 * MAX_BURST.get()).filter(|_| rates.check(&one).is_ok()).count();
        assert!((MAX_BURST.get() as usize..2 * MAX_BURST.get() as usize).contains(&passed), "{passed}");
        assert_eq!(rates.check(&other), Ok(()));
    }

    #[test]
    fn the_addresses_of_one_customer_are_one_caller() {
        let counted = |address: &str| Caller::Address(address.parse().unwrap()).counted();
        assert_eq!(counted("2001:db8::1"), counted("2001:db8::2"));
        assert_ne!(counted("2001:db8::1"), counted("2001:db8:0:1::1"));
        assert_ne!(counted("192.0.2.1"), counted("192.0.2.2"));
        assert_eq!(counted("127.0.0.1"), counted("127.9.9.9"), "any program here may call from any of them");
        assert_eq!(counted("127.0.0.1"), counted("::1"));
    }
}
