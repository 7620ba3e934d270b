//! A proxy that is away keeps requests from every host. It is waited for, as a server of trawl's own is: no host is left
//! alone for it, and no URL fails.

use std::time::Duration;

use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::time::UnixMs;

use crate::shared::Shared;
use crate::spiders::Loaded;

/// After how long, about, a URL comes back to try whether the proxy is there again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// When a URL is to come back that got `answer`, if that is because the proxy is away. Says once that it is, and once that
/// it is back.
pub(crate) fn proxy_is_away<T>(
    shared: &Shared,
    spider: &Loaded,
    answer: &Result<T, Failure>,
) -> Option<UnixMs> {
    match answer {
        Err(failure) if failure.class == Class::Proxy => Some(proxy_fails(shared, spider, failure)),
        _ => {
            proxy_works(shared, spider);
            None
        }
    }
}

/// Notes that the proxy is away. Returns when to try again.
pub(crate) fn proxy_fails(shared: &Shared, spider: &Loaded, failure: &Failure) -> UnixMs {
    if let Some(asking) = asking(spider) {
        shared.health.fails(&asking, &Error::new(ErrorKind::Unavailable, failure.detail.clone()));
    }
    UnixMs::now().plus(TRY_AGAIN.mul_f64(rand::random_range(1.0..2.0)))
}

/// Notes that the proxy is there, if there is to be one.
pub(crate) fn proxy_works(shared: &Shared, spider: &Loaded) {
    if let Some(asking) = asking(spider) {
        shared.health.works(&asking);
    }
}

fn asking(spider: &Loaded) -> Option<String> {
    Some(format!("asking through the proxy {}", spider.fetcher.proxy()?))
}
