//! Gets robots.txt files (RFC 9309) from the fleet's store, or from the origin.

use std::time::Duration;

use tokio::time::sleep;
use tracing::{debug, warn};
use trawl_common::frontier::outcome::Failure;
use trawl_common::health::Health;
use trawl_common::politeness::gcra::HORIZON;
use trawl_common::politeness::robots::{KEPT_FOR, RobotsFile, RobotsKey};
use trawl_common::politeness::waiting::NEAR;
use trawl_common::ports::{Error, ErrorKind, Hosts, Result, RobotsEntry};
use trawl_common::settings::{Retry, Settings};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Origin;
use trawl_web::NoRobots;

use super::standstill::Why;
use crate::fetch::{apart, blameless};
use crate::shared::Shared;
use crate::spiders::Loaded;

/// Interval at which to check whether another worker has fetched a file.
const LOOK: Duration = Duration::from_millis(200);

/// The result of getting a file.
pub(crate) enum Learnt {
    /// The file is remembered now.
    Known,
    /// A host involved must not be asked before this time.
    Later(UnixMs),
    /// A host involved refused the request, and must be left alone until this time.
    Refused(Failure, UnixMs),
    /// An operator blocked a host involved.
    Blocked,
    /// The store of the files or of the schedules failed permanently.
    Failed(Error),
    /// Reading the file made the worker panic.
    Panicked,
}

/// Gets an origin's robots.txt. One worker fetches it, and the others wait for that. If redirects take longer
/// than the lease, another worker starts as well.
pub(super) async fn learn(shared: &Shared, spider: &Loaded, origin: &Origin) -> Learnt {
    find_out(shared, spider, origin).await.unwrap_or_else(Learnt::Failed)
}

async fn find_out(shared: &Shared, spider: &Loaded, origin: &Origin) -> Result<Learnt> {
    let Shared { ports, health, settings, .. } = shared;
    let key = spider.politeness.robots_key(origin);
    let fetching = async || fetch(shared, spider, origin).await;
    Ok(match known_or_fetched(&*ports.hosts, health, settings, &key, fetching).await? {
        Ok(file) => {
            shared.robots.remember(&settings.retry, key, &spider.robots_name, &file);
            Learnt::Known
        }
        Err(learnt) => learnt,
    })
}

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
            Ok(RobotsEntry::Awaited) => sleep(LOOK).await,
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
    if robots.is_lasting { KEPT_FOR } else { retry.robots_again() }
}

/// Fetches the file, and returns it with its lifetime.
async fn fetch(
    shared: &Shared,
    spider: &Loaded,
    origin: &Origin,
) -> std::result::Result<(RobotsFile, Duration), Learnt> {
    let mut way = shared.robots.way(origin);
    let asking = shared.standstill.asks_robots(origin);
    let domain = HostKey::domain(&origin.robots_txt().host());
    let answer = apart::ask(shared, spider, domain, async |fetcher| {
        fetcher.robots(&shared.schedules, &spider.politeness, &mut way).await
    });
    let answer = answer.await.unwrap_or_else(|until| Err(NoRobots::Later(until)));
    drop(asking);
    if let Ok(_) | Err(NoRobots::Refused(..)) = &answer {
        blameless::proxy_works(shared, spider);
    }
    let learnt = match answer {
        Ok(robots) => {
            debug!(%origin, status = robots.file.status, "robots.txt");
            let ttl = time_to_live(&robots, &shared.settings.retry);
            return Ok((robots.file, ttl));
        }
        Err(NoRobots::Blocked) => Learnt::Blocked,
        Err(NoRobots::Failed(error)) => Learnt::Failed(error),
        Err(NoRobots::Later(until)) => Learnt::Later(until),
        Err(NoRobots::Blameless(failure)) => Learnt::Later(blameless::fails(shared, spider, &failure)),
        Err(NoRobots::Refused(host, failure, until)) => {
            shared.standstill.waits(&host, until, Why::Refused(failure.status.unwrap_or_default()));
            Learnt::Refused(failure, until)
        }
    };
    shared.robots.keep_way(origin.clone(), way);
    Err(learnt)
}
