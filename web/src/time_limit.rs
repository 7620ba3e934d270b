//! Time limits of calls.

use std::time::Duration;

use tokio::time::timeout;
use trawl_common::frontier::outcome::{Class, Failure};

/// Returns the result of `call`, or a failure if it takes longer than `limit`.
pub(super) async fn within<T, E: From<Failure>>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    timeout(limit, call).await.unwrap_or_else(|_| {
        let detail = format_args!("no complete answer within {limit:?} (`fetch.timeout`)").to_string();
        Err(Failure::new(Class::Timeout, detail).into())
    })
}
