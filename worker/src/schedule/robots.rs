//! Gets robots.txt files (RFC 9309) from the fleet's store, or from the origin.

use tracing::debug;
use trawl_common::frontier::outcome::Failure;
use trawl_common::ports::Error;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Origin;
use trawl_web::{NoRobots, RobotsWay};

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

/// Gets an origin's robots.txt, as [`PoliteClient::learn_by`](super::polite::PoliteClient::learn_by) does.
pub(super) async fn learn(scheduling: &Scheduling, spider: &LoadedSpider, origin: &Origin) -> Learnt {
    let Scheduling { asker, domains, idle_reasons, .. } = scheduling;
    let fetch = async |way: &mut RobotsWay| {
        let _asking = idle_reasons.asks_robots(origin);
        let domain = HostKey::domain(&origin.robots_txt().host());
        let answer = apart::ask(domains, spider, domain, async |fetcher| {
            fetcher.robots(&asker.schedules, &spider.politeness, way).await
        });
        let answer = answer.await.unwrap_or_else(|until| Err(NoRobots::Later(until)));
        if let Ok(_) | Err(NoRobots::Refused(..)) = &answer {
            blameless::note_proxy_works(scheduling, spider);
        }
        answer.inspect(|robots| debug!(%origin, status = robots.file.status, "robots.txt"))
    };
    match asker.learn_by(&spider.politeness, &spider.robots_name, origin, fetch).await {
        Ok(()) => Learnt::Known,
        Err(NoRobots::Blocked) => Learnt::Blocked,
        Err(NoRobots::Failed(error)) => Learnt::Failed(error),
        Err(NoRobots::Later(until)) => Learnt::Later(until),
        Err(NoRobots::Blameless(failure)) => {
            Learnt::Later(blameless::note_failure(scheduling, spider, &failure))
        }
        Err(NoRobots::Refused(host, failure, until)) => {
            idle_reasons.note_wait(&host, until, Why::Refused(failure.status.unwrap_or_default()));
            Learnt::Refused(failure, until)
        }
    }
}
