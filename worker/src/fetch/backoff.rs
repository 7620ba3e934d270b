//! Back-offs: a host that answers 429 or 503 must be left alone by the whole fleet, which is not a failure of
//! the URL.

use trawl_common::frontier::outcome::{Class, Failure, Outcome, is_refusal};
use trawl_common::politeness::waiting::FIRST_LOOK;
use trawl_common::spider::Then;
use trawl_common::time::UnixMs;
use trawl_web::Answer;

use super::page::status;
use crate::job::Job;
use crate::schedule::standstill::Why;
use crate::settlement::aborted;
use crate::shared::Shared;

/// The number of refusals after which further ones of a URL count as failures: it may be the URL that the
/// host cannot serve.
const MOST: u16 = 10;

/// Whether a host may be asked as before after this response: not after a refusal, nor after a server error.
pub(crate) fn is_welcome(answer: &Result<Answer, Failure>) -> bool {
    status(answer).is_some_and(|status| status < 500 && !is_refusal(status))
}

/// Returns the outcome of a URL whose response is a ban by its spider's rules.
pub(crate) async fn banned(shared: &Shared, job: &mut Job, failure: Failure) -> Outcome {
    match job.spider.bans.then {
        Then::Retry => job.failed_for_now(&shared.settings.retry, failure),
        Then::BackOff => left_alone(shared, job, failure).await,
    }
}

/// Makes the fleet leave the last host of a job alone, and returns the job's outcome.
pub(crate) async fn left_alone(shared: &Shared, job: &mut Job, failure: Failure) -> Outcome {
    match leave_alone(shared, job, &failure).await {
        Ok(until) => refused(shared, job, failure, until),
        Err(outcome) => outcome,
    }
}

/// Makes the fleet leave the last host of a job alone, and returns the end of the back-off; or the outcome of
/// the job if that cannot be stored.
pub(super) async fn leave_alone(shared: &Shared, job: &Job, failure: &Failure) -> Result<UnixMs, Outcome> {
    let politeness = &job.spider.politeness;
    let key = politeness.host_policy(&job.target().host()).key;
    match shared.schedules.push_back(&key, politeness, failure, Some(&job.message.crawl)).await {
        Ok(until) => {
            shared.host_log.backs_off(&key, until, failure, Some(&job.message.crawl));
            shared.standstill.waits(&key, until, Why::Refused(failure.status.unwrap_or_default()));
            Ok(until)
        }
        Err(error) => Err(aborted(&shared.health, error)),
    }
}

/// Returns the outcome of a URL whose host is in a back-off until `until`. It is tried earlier, in case an
/// operator lifts the back-off.
pub(crate) fn refused(shared: &Shared, job: &mut Job, failure: Failure, until: UnixMs) -> Outcome {
    job.message.refusals = job.message.refusals.saturating_add(1);
    if job.message.refusals > MOST {
        return match failure.class {
            Class::Banned => job.failed_for_now(&shared.settings.retry, failure),
            _ => job.failed(&shared.settings.retry, failure),
        };
    }
    Outcome::Deferred { until: until.min(UnixMs::now().plus(FIRST_LOOK)) }
}
