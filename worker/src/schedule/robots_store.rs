//! The fleet's store of robots.txt files (RFC 9309): one process fetches a file, and the others wait for that.

use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;
use trawl_common::health::Health;
use trawl_common::politeness::gcra::HORIZON;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey, STORE_TTL};
use trawl_common::politeness::waiting::NEAR;
use trawl_common::ports::{ErrorKind, Hosts, RobotsEntry};
use trawl_common::settings::Settings;
use trawl_web::{NoRobots, Robots};

/// Interval at which to check whether another worker has fetched a file.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Returns the file that `hosts` stores for all workers, or the result of `fetch`, which it then stores for the others.
/// Waits while the store is away.
pub(super) async fn known_or_fetched(
    hosts: &dyn Hosts,
    health: &Health,
    settings: &Settings,
    key: &RobotsKey,
    fetch: impl AsyncFnOnce() -> Result<Robots, NoRobots>,
) -> Result<RobotsFile, NoRobots> {
    let lease = settings.fetch.timeout + HORIZON + NEAR;
    loop {
        match health.retry("looking for robots.txt", || hosts.robots(key, lease)).await {
            Ok(RobotsEntry::Known(file)) => return Ok(file),
            Ok(RobotsEntry::Awaited) => sleep(CHECK_INTERVAL).await,
            Ok(RobotsEntry::Yours) => break,
            Err(error) if error.kind == ErrorKind::Corrupt => {
                warn!(name = %key, %error, "what is kept as its robots.txt is none; asking for it anew");
                break;
            }
            Err(error) => return Err(NoRobots::Failed(error)),
        }
    }
    let fetched = fetch().await;
    let stored = match &fetched {
        Ok(robots) => {
            let ttl = if robots.is_lasting { STORE_TTL } else { settings.retry.robots_again() };
            health.retry("keeping robots.txt", || hosts.keep_robots(key, &robots.file, ttl)).await
        }
        Err(_) => health.retry("giving up robots.txt", || hosts.give_up_robots(key)).await,
    };
    stored.map_err(NoRobots::Failed)?;
    fetched.map(|robots| robots.file)
}
