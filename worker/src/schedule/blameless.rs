//! Failures that are no host's fault: the proxy is unavailable, or this machine lacks resources for requests.
//! The worker waits for both, as for one of trawl's own servers: no host is left alone for it, no attempt
//! counts, and no URL fails.

use std::time::Duration;

use tokio::time::Instant;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::open_files::{self, TooFewFiles};
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::time::UnixMs;

use super::Scheduling;
use crate::spiders::LoadedSpider;

/// Approximate delay before a URL is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Time without a repetition after which the shortage counts as over.
const RECOVERY_TIME: Duration = Duration::from_secs(20);

/// Name in the log and in the health report for everything that this machine may lack.
const ASKING: &str = "asking hosts";

/// Returns the time at which to try a URL again, if `answer` is a failure that is no host's fault. Reports
/// once that such failures occur, and once that they are over.
pub(crate) fn put_off<T>(
    scheduling: &Scheduling,
    spider: &LoadedSpider,
    answer: &Result<T, Failure>,
) -> Option<UnixMs> {
    match answer {
        Err(failure) if failure.class.is_blameless() => Some(note_failure(scheduling, spider, failure)),
        _ => {
            note_proxy_works(scheduling, spider);
            None
        }
    }
}

/// Records such a failure, and returns when to try again.
pub(crate) fn note_failure(scheduling: &Scheduling, spider: &LoadedSpider, failure: &Failure) -> UnixMs {
    let error = Error::new(ErrorKind::Unavailable, &failure.detail);
    match (failure.class, asking_proxy(spider)) {
        (Class::Proxy, Some(asking)) => scheduling.context.health.report_failure(&asking, &error),
        _ => report_lack(scheduling, &error),
    }
    UnixMs::now().plus(RETRY_DELAY.mul_f64(rand::random_range(1.0..2.0)))
}

/// Records that the proxy works, if the spider uses one.
pub(crate) fn note_proxy_works(scheduling: &Scheduling, spider: &LoadedSpider) {
    if let Some(asking) = asking_proxy(spider) {
        scheduling.context.health.report_ok(&asking);
    }
}

/// Returns the time until which nothing is to be claimed or started, because this machine lacks something.
pub(crate) fn wanting_until(scheduling: &Scheduling) -> Option<Instant> {
    if !open_files::has_room() {
        report_lack(scheduling, &Error::new(ErrorKind::Unavailable, TooFewFiles::now()));
    }
    scheduling.wanting.until()
}

fn report_lack(scheduling: &Scheduling, error: &Error) {
    scheduling.wanting.for_a_while();
    scheduling.context.health.report_recent_failure(ASKING, error, RECOVERY_TIME);
}

fn asking_proxy(spider: &LoadedSpider) -> Option<String> {
    Some(format!("asking through the proxy {}", spider.fetcher.proxy()?))
}
