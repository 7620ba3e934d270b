//! A host that answers 429 or 503 wants to be left alone, by the whole fleet: that is no failure of the URL.

use trawl_common::outcome::{Class, Failure, Outcome, is_refusal};
use trawl_common::spider::{Bans, Then};
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;
use trawl_common::waiting::FIRST_LOOK;
use trawl_web::Answer;

use crate::Shared;
use crate::job::Job;
use crate::spiders::Loaded;
use crate::standstill::Why;

/// After so many refusals a URL's next ones count as failures: it may be the URL that the host cannot serve.
const MOST: u16 = 10;

/// Whether a host goes on after such an answer as if nothing were: not after a refusal, nor after a failure of its own.
pub(crate) fn is_welcome<T>(answer: &Result<T, Failure>) -> bool {
    match answer {
        Ok(_) => true,
        Err(failure) => failure.status.is_some_and(|status| status < 500 && !is_refusal(status)),
    }
}

/// The ban that an answer is by its spider's rules; what wants the host left alone anyway is none.
pub(crate) fn ban(bans: &Bans, answer: &Result<Answer, Failure>) -> Option<Failure> {
    match answer {
        Ok(Answer::Page(response)) => bans.by_page(response),
        Ok(Answer::Redirect(target)) => bans.by_redirect(target),
        Ok(Answer::Unread { status, .. }) => bans.by_status(*status),
        Ok(Answer::NotModified) => None,
        Err(failure) if failure.is_refusal() => None,
        Err(failure) => {
            let ban = bans.by_status(failure.status?)?;
            Some(Failure { retry_after: failure.retry_after, ..ban })
        }
    }
}

/// What becomes of a URL whose answer is a ban by its spider's rules.
pub(crate) async fn banned(shared: &Shared, job: &mut Job, failure: Failure) -> Outcome {
    match job.spider.bans.then {
        Then::Retry => job.failed_for_now(&shared.settings.retry, failure),
        Then::BackOff => {
            let until = push_back(shared, &job.spider, job.message.target(), &failure).await;
            refused(shared, job, failure, until)
        }
    }
}

/// Has everyone leave the host of `url` alone. Returns until when.
pub(crate) async fn push_back(
    shared: &Shared,
    spider: &Loaded,
    url: &CanonicalUrl,
    failure: &Failure,
) -> UnixMs {
    let key = spider.politeness.manners(&url.host()).key;
    let until = shared.turns.push_back(&key, &spider.politeness, failure).await;
    shared.standstill.waits(&key, until, Why::Refused(failure.status.unwrap_or_default()));
    until
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
