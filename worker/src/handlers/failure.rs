//! Failures that a program is given in place of a page.

use trawl_common::frontier::outcome::{Failure, Outcome, Skip};
use trawl_common::handler::stream::FailureView;
use trawl_common::request::Failures;

use crate::job::Job;

/// The end of an attempt that brought no page, which the program of its spider is to take in.
pub(crate) struct NoPage {
    /// What becomes of the request unless its program has taken that in.
    pub(crate) outcome: Outcome,
    /// What the program is given.
    pub(crate) view: FailureView,
}

impl NoPage {
    /// Of an attempt that ended so, before any program had its page. Returns the outcome where the program is given nothing: it reads no
    /// pages, the request does not ask for that, or trawl goes on by itself.
    pub(crate) fn of(job: &Job, outcome: Outcome) -> Result<Self, Outcome> {
        let wanted = job.reader().and(job.request()).and_then(|request| request.new.failures);
        let attempt = job.attempts + 1;
        let view = wanted.and_then(|wanted| match &outcome {
            Outcome::Failed(failure, _) => Some(failed(failure, attempt)),
            Outcome::Retry(failure, _) => (wanted == Failures::Each).then(|| failed(failure, attempt)),
            Outcome::Skipped(skip) => skipped(*skip, attempt),
            Outcome::Done
            | Outcome::Deferred { .. }
            | Outcome::Unready { .. }
            | Outcome::Expired
            | Outcome::SentAgain
            | Outcome::Released => None,
        });
        match view {
            Some(view) => Ok(Self { outcome, view }),
            None => Err(outcome),
        }
    }
}

fn failed(failure: &Failure, attempt: u32) -> FailureView {
    let Failure { class, status, detail, .. } = failure;
    FailureView { class: class.as_str(), skipped: false, detail: detail.clone(), status: *status, attempt }
}

/// Of what no attempt gets past. What a limit of its crawl leaves out is no matter of the request, nor is what is known of another page.
fn skipped(skip: Skip, attempt: u32) -> Option<FailureView> {
    let detail = match skip {
        Skip::ContentType => "the content is of a kind that no spider reads",
        Skip::Robots => "the host's robots.txt forbids it",
        Skip::Blocked => "its host, or one that it redirects to, is blocked",
        Skip::Scope => "it redirects to where the spider does not go",
        Skip::Duplicate | Skip::Limit | Skip::Unchanged | Skip::Fresh | Skip::Handler => return None,
    };
    Some(FailureView {
        class: skip.as_str(),
        skipped: true,
        detail: detail.to_owned(),
        status: None,
        attempt,
    })
}
