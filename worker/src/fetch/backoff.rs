//! A host that answers 429 or 503 wants to be left alone, by the whole fleet: that is no failure of the URL.

use trawl_common::frontier::outcome::{Class, Failure, Outcome, is_refusal};
use trawl_common::politeness::waiting::FIRST_LOOK;
use trawl_common::spider::Then;
use trawl_common::time::UnixMs;
use trawl_web::Answer;

use super::page::status;
use crate::job::Job;
use crate::schedule::standstill::Why;
use crate::shared::Shared;

/// After so many refusals a URL's next ones count as failures: it may be the URL that the host cannot serve.
const MOST: u16 = 10;

/// Whether a host goes on after such an answer as if nothing were: not after a refusal, nor after a failure of its own.
pub(crate) fn is_welcome(answer: &Result<Answer, Failure>) -> bool {
    status(answer).is_some_and(|status| status < 500 && !is_refusal(status))
}

/// What becomes of a URL whose answer is a ban by its spider's rules.
pub(crate) async fn banned(shared: &Shared, job: &mut Job, failure: Failure) -> Outcome {
    match job.spider.bans.then {
        Then::Retry => job.failed_for_now(&shared.settings.retry, failure),
        Then::BackOff => left_alone(shared, job, failure).await,
    }
}

/// Has everyone leave the host alone that a job asked last, and says what becomes of the job.
pub(crate) async fn left_alone(shared: &Shared, job: &mut Job, failure: Failure) -> Outcome {
    match leave_alone(shared, job, &failure).await {
        Ok(until) => refused(shared, job, failure, until),
        Err(outcome) => outcome,
    }
}

/// Has everyone leave the host alone that a job asked last, until the instant that is returned; or says what becomes of the job if that
/// cannot be written down.
pub(super) async fn leave_alone(shared: &Shared, job: &Job, failure: &Failure) -> Result<UnixMs, Outcome> {
    let politeness = &job.spider.politeness;
    let key = politeness.host_policy(&job.target().host()).key;
    match shared.schedules.push_back(&key, politeness, failure, Some(&job.message.crawl)).await {
        Ok(until) => {
            shared.host_log.backs_off(&key, until, failure, Some(&job.message.crawl));
            shared.standstill.waits(&key, until, Why::Refused(failure.status.unwrap_or_default()));
            Ok(until)
        }
        Err(error) => {
            shared.health.ends_by(error);
            Err(Outcome::Released)
        }
    }
}

/// What becomes of a URL whose host is left alone until `until`. It comes back earlier to look, in case a person lifts that.
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
