//! Failures for which no host is to blame: the proxy is away, or this machine lacks something that requests take. Both are waited for, as a server
//! of trawl's own is: no host is left alone for it, no attempt counts, and no URL fails.

use std::time::Duration;

use tokio::time::Instant;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::open_files::{self, TooFewFiles};
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::time::UnixMs;

use crate::shared::Shared;
use crate::spiders::Loaded;

/// The time, about, after which a URL comes back to try again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The time for which no URLs are claimed or begun when this machine lacks something.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);

/// The time after which a want that was not met again counts as over.
const OVER: Duration = Duration::from_secs(20);

/// The name in the log and in health of all that this machine may lack.
const ASKING: &str = "asking hosts";

/// The instant at which a URL is to come back that got `answer`, if no host is to blame for that. Says once that this is so, and once that it is over.
pub(crate) fn put_off<T>(shared: &Shared, spider: &Loaded, answer: &Result<T, Failure>) -> Option<UnixMs> {
    match answer {
        Err(failure) if failure.class.is_blameless() => Some(fails(shared, spider, failure)),
        _ => {
            proxy_works(shared, spider);
            None
        }
    }
}

/// Notes such a failure. Returns when to try again.
pub(crate) fn fails(shared: &Shared, spider: &Loaded, failure: &Failure) -> UnixMs {
    let error = Error::new(ErrorKind::Unavailable, &failure.detail);
    match (failure.class, asking_proxy(spider)) {
        (Class::Proxy, Some(asking)) => shared.health.fails(&asking, &error),
        _ => lacks(shared, &error),
    }
    UnixMs::now().plus(TRY_AGAIN.mul_f64(rand::random_range(1.0..2.0)))
}

/// Notes that the proxy is there, if there is to be one.
pub(crate) fn proxy_works(shared: &Shared, spider: &Loaded) {
    if let Some(asking) = asking_proxy(spider) {
        shared.health.works(&asking);
    }
}

/// The instant until which nothing is to be claimed or begun, as this machine lacks something.
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
