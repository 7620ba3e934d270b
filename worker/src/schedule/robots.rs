//! Gets robots.txt files (RFC 9309) from the fleet's store, or from the origin.

use std::time::Duration;

use tracing::debug;
use trawl_common::frontier::outcome::Failure;
use trawl_common::politeness::robots::RobotsFile;
use trawl_common::ports::{Error, Result};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Origin;
use trawl_web::NoRobots;

use super::robots_store::{known_or_fetched, time_to_live};
use super::{Scheduling, apart, blameless};
use crate::spiders::LoadedSpider;
use crate::telemetry::idle_reasons::Why;

/// The result of getting a file.
pub(super) enum Learnt {
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
pub(super) async fn learn(scheduling: &Scheduling, spider: &LoadedSpider, origin: &Origin) -> Learnt {
    find_out(scheduling, spider, origin).await.unwrap_or_else(Learnt::Failed)
}

async fn find_out(scheduling: &Scheduling, spider: &LoadedSpider, origin: &Origin) -> Result<Learnt> {
    let Scheduling { context, asker, .. } = scheduling;
    let (hosts, settings) = (&*asker.schedules.hosts, &context.settings);
    let key = spider.politeness.robots_key(origin);
    let fetching = async || fetch(scheduling, spider, origin).await;
    Ok(match known_or_fetched(hosts, &context.health, settings, &key, fetching).await? {
        Ok(file) => {
            scheduling.asker.robots.remember(&settings.retry, key, &spider.robots_name, &file);
            Learnt::Known
        }
        Err(learnt) => learnt,
    })
}

/// Fetches the file, and returns it with its lifetime.
async fn fetch(
    scheduling: &Scheduling,
    spider: &LoadedSpider,
    origin: &Origin,
) -> std::result::Result<(RobotsFile, Duration), Learnt> {
    let mut way = scheduling.asker.robots.way(origin);
    let asking = scheduling.idle_reasons.asks_robots(origin);
    let domain = HostKey::domain(&origin.robots_txt().host());
    let answer = apart::ask(&scheduling.domains, spider, domain, async |fetcher| {
        fetcher.robots(&scheduling.asker.schedules, &spider.politeness, &mut way).await
    });
    let answer = answer.await.unwrap_or_else(|until| Err(NoRobots::Later(until)));
    drop(asking);
    if let Ok(_) | Err(NoRobots::Refused(..)) = &answer {
        blameless::proxy_works(scheduling, spider);
    }
    let learnt = match answer {
        Ok(robots) => {
            debug!(%origin, status = robots.file.status, "robots.txt");
            let ttl = time_to_live(&robots, &scheduling.context.settings.retry);
            return Ok((robots.file, ttl));
        }
        Err(NoRobots::Blocked) => Learnt::Blocked,
        Err(NoRobots::Failed(error)) => Learnt::Failed(error),
        Err(NoRobots::Later(until)) => Learnt::Later(until),
        Err(NoRobots::Blameless(failure)) => Learnt::Later(blameless::fails(scheduling, spider, &failure)),
        Err(NoRobots::Refused(host, failure, until)) => {
            scheduling.idle_reasons.waits(&host, until, Why::Refused(failure.status.unwrap_or_default()));
            Learnt::Refused(failure, until)
        }
    };
    scheduling.asker.robots.keep_way(origin.clone(), way);
    Err(learnt)
}
