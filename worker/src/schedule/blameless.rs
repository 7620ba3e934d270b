//! Failures that are no host's fault: the proxy is unavailable, or this machine lacks resources for requests.
//! The worker waits for both, as for one of trawl's own servers: no host is left alone for it, no attempt
//! counts, and no URL fails.

use std::time::Duration;

use tokio::time::Instant;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::open_files::{self, TooFewFiles};
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::time::UnixMs;

use crate::shared::Shared;
use crate::spiders::Loaded;

/// Approximate delay before a URL is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The time for which no URLs are claimed or started when this machine lacks something.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);

/// Time without a repetition after which the shortage counts as over.
const OVER: Duration = Duration::from_secs(20);

/// Name in the log and in the health report for everything that this machine may lack.
const ASKING: &str = "asking hosts";

/// Returns the time at which to try a URL again, if `answer` is a failure that is no host's fault. Reports
/// once that such failures occur, and once that they are over.
pub(crate) fn put_off<T>(shared: &Shared, spider: &Loaded, answer: &Result<T, Failure>) -> Option<UnixMs> {
    match answer {
        Err(failure) if failure.class.is_blameless() => Some(fails(shared, spider, failure)),
        _ => {
            proxy_works(shared, spider);
            None
        }
    }
}

/// Records such a failure, and returns when to try again.
pub(crate) fn fails(shared: &Shared, spider: &Loaded, failure: &Failure) -> UnixMs {
    let error = Error::new(ErrorKind::Unavailable, &failure.detail);
    match (failure.class, asking_proxy(spider)) {
        (Class::Proxy, Some(asking)) => shared.health.fails(&asking, &error),
        _ => lacks(shared, &error),
    }
    UnixMs::now().plus(TRY_AGAIN.mul_f64(rand::random_range(1.0..2.0)))
}

/// Records that the proxy works, if the spider uses one.
pub(crate) fn proxy_works(shared: &Shared, spider: &Loaded) {
    if let Some(asking) = asking_proxy(spider) {
        shared.health.works(&asking);
    }
}

/// Returns the time until which nothing is to be claimed or started, because this machine lacks something.
pub(crate) fn wanting_until(shared: &Shared) -> Option<Instant> {
    if !open_files::has_room() {
        lacks(shared, &Error::new(ErrorKind::Unavailable, TooFewFiles::now()));
    }
    shared.wanting.until()
}

fn lacks(shared: &Shared, error: &Error) {
    shared.wanting.for_a_while();
    shared.health.fails_lately(ASKING, error, OVER);
}

fn asking_proxy(spider: &Loaded) -> Option<String> {
    Some(format!("asking through the proxy {}", spider.fetcher.proxy()?))
}
