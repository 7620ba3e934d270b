//! Back-offs: a host that answers 429 or 503 must be left alone by the whole fleet, which is not a failure of
//! the URL.

use trawl_common::frontier::outcome::{Class, Failure, Outcome, is_welcoming};
use trawl_common::politeness::waiting::FIRST_LOOK;
use trawl_common::settings::Retry;
use trawl_common::spider::Then;
use trawl_common::time::UnixMs;
use trawl_web::Answer;

use super::Scheduling;
use crate::claimed::ClaimedUrl;
use crate::claimed::settlement::aborted;
use crate::telemetry::idle_reasons::Why;

/// The number of refusals after which further ones of a URL count as failures: it may be the URL that the
/// host cannot serve.
const MAX_REFUSALS: u16 = 10;

/// Whether a host may be asked as before after this response, which its spider's rules may call a ban.
pub(crate) fn is_welcome(answer: &Result<Answer, Failure>, ban: Option<&Failure>) -> bool {
    ban.is_none() && status(answer).is_some_and(is_welcoming)
}

/// Returns the status of a host's response; for a redirect, a status like it.
pub(crate) fn status(answer: &Result<Answer, Failure>) -> Option<u16> {
    match answer {
        Ok(Answer::Page(response)) => Some(response.status),
        Ok(Answer::NotModified) => Some(304),
        Ok(Answer::Redirect(_)) => Some(302),
        Ok(Answer::Unread { status, .. }) => Some(*status),
        Err(failure) => failure.status,
    }
}

/// Returns the outcome of a URL whose response is a ban by its spider's rules.
pub(crate) async fn banned(scheduling: &Scheduling, claimed: &mut ClaimedUrl, failure: Failure) -> Outcome {
    match claimed.spider.bans.then {
        Then::Retry => claimed.failed_for_now(&scheduling.context.settings.retry, failure),
        Then::BackOff => left_alone(scheduling, claimed, failure).await,
    }
}

/// Makes the fleet leave the last host of a URL alone, and returns the URL's outcome.
pub(crate) async fn left_alone(
    scheduling: &Scheduling,
    claimed: &mut ClaimedUrl,
    failure: Failure,
) -> Outcome {
    match leave_alone(scheduling, claimed, &failure).await {
        Ok(until) => refused(&scheduling.context.settings.retry, claimed, failure, until),
        Err(outcome) => outcome,
    }
}

/// Makes the fleet leave the last host of a URL alone, and returns the end of the back-off; or the outcome of
/// the URL if that cannot be stored.
pub(crate) async fn leave_alone(
    scheduling: &Scheduling,
    claimed: &ClaimedUrl,
    failure: &Failure,
) -> Result<UnixMs, Outcome> {
    let politeness = &claimed.spider.politeness;
    let key = politeness.host_policy(&claimed.target().host()).key;
    match scheduling.asker.back_off(&key, politeness, failure, Some(&claimed.message.crawl)).await {
        Ok(until) => {
            scheduling.idle_reasons.note_wait(&key, until, Why::Refused(failure.status.unwrap_or_default()));
            Ok(until)
        }
        Err(error) => Err(aborted(&scheduling.context.health, error)),
    }
}

/// Returns the outcome of a URL whose host is in a back-off until `until`. It is tried earlier, in case an
/// operator lifts the back-off.
pub(crate) fn refused(policy: &Retry, claimed: &mut ClaimedUrl, failure: Failure, until: UnixMs) -> Outcome {
    claimed.message.refusals = claimed.message.refusals.saturating_add(1);
    if claimed.message.refusals > MAX_REFUSALS {
        return match failure.class {
            Class::Banned => claimed.failed_for_now(policy, failure),
            _ => claimed.failed(policy, failure),
        };
    }
    Outcome::Snooze { until: until.min(UnixMs::now().plus(FIRST_LOOK)) }
}
