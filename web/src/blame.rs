//! Which failures are not the host's fault.

use trawl_common::frontier::outcome::{Class, Failure};
use url::Url;

use super::guard::Guard;
use super::proxy::Proxy;
use super::resolver::{self, NoResolver};

/// Replaces the failure of a request for `url` if the host is not to blame: the proxy cannot be reached, or the
/// resolver does not answer.
pub(super) async fn assign(failure: Failure, proxy: Option<&Proxy>, guard: &Guard, url: &Url) -> Failure {
    let failure = match proxy {
        Some(proxy) => proxy.or_is_away(failure).await,
        None => failure,
    };
    // A name in the cache was resolved, so the resolver did not cause the timeout.
    let is_unknown = |name| guard.found(name).is_none();
    let asks_resolver = proxy.is_none_or(|proxy| !proxy.resolves_names);
    match failure.class {
        Class::Timeout
            if asks_resolver && url.domain().is_some_and(is_unknown) && !resolver::is_answering().await =>
        {
            Failure::new(Class::Machine, NoResolver)
        }
        _ => failure,
    }
}
