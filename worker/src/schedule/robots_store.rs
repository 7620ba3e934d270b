//! The fleet's store of robots.txt files (RFC 9309): one process fetches a file, and the others wait for that.

use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;
use trawl_common::health::Health;
use trawl_common::politeness::gcra::HORIZON;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey, STORE_TTL};
use trawl_common::politeness::waiting::NEAR;
use trawl_common::ports::{ErrorKind, Hosts, Result, RobotsEntry};
use trawl_common::settings::{Retry, Settings};

/// Interval at which to check whether another worker has fetched a file.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Returns the file that `hosts` stores for all workers, or the result of `fetch` (the file and its
/// lifetime), which it then stores for the others.
pub(crate) async fn known_or_fetched<E>(
    hosts: &dyn Hosts,
    health: &Health,
    settings: &Settings,
    key: &RobotsKey,
    fetch: impl AsyncFnOnce() -> std::result::Result<(RobotsFile, Duration), E>,
) -> Result<std::result::Result<RobotsFile, E>> {
    let lease = settings.fetch.timeout + HORIZON + NEAR;
    loop {
        match health.retry("looking for robots.txt", || hosts.robots(key, lease)).await {
            Ok(RobotsEntry::Known(file)) => return Ok(Ok(file)),
            Ok(RobotsEntry::Awaited) => sleep(CHECK_INTERVAL).await,
            Ok(RobotsEntry::Yours) => break,
            Err(error) if error.kind == ErrorKind::Corrupt => {
                warn!(name = %key, %error, "what is kept as its robots.txt is none; asking for it anew");
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let fetched = fetch().await;
    match &fetched {
        Ok((file, ttl)) => {
            health.retry("keeping robots.txt", || hosts.keep_robots(key, file, *ttl)).await?;
        }
        Err(_) => health.retry("giving up robots.txt", || hosts.give_up_robots(key)).await?,
    }
    Ok(fetched.map(|(file, _)| file))
}

/// Returns the lifetime of a response.
pub(crate) fn time_to_live(robots: &trawl_web::Robots, retry: &Retry) -> Duration {
    if robots.is_lasting { STORE_TTL } else { retry.robots_again() }
}
