//! Failures that a program handles in place of a page.

use trawl_common::frontier::outcome::{Failure, Outcome, Skip};
use trawl_common::handler::stream::FailureView;
use trawl_common::request::Failures;

use super::ClaimedUrl;

/// A failed attempt that the program of the spider is to handle.
pub(crate) struct FailureForProgram {
    /// The outcome of the request if its program does not handle the failure.
    pub(crate) outcome: Outcome,
    /// The failure as shown to the program.
    pub(crate) view: FailureView,
}

impl FailureForProgram {
    /// Returns the failure of an attempt for its program. Returns the outcome unchanged if the program does
    /// not handle it: the program reads no pages, the request does not ask for failures, or trawl handles the
    /// outcome itself.
    pub(crate) fn new(claimed: &ClaimedUrl, outcome: Outcome) -> Result<Self, Outcome> {
        let wanted = claimed.reader().and(claimed.request()).and_then(|request| request.new.failures);
        let attempt = claimed.attempts + 1;
        let view = wanted.and_then(|wanted| match &outcome {
            Outcome::Failed(failure, _) => Some(failed(failure, attempt)),
            Outcome::Retry { failure, .. } => (wanted == Failures::Each).then(|| failed(failure, attempt)),
            Outcome::Skipped(skip) => skipped(*skip, attempt),
            Outcome::Snooze { .. }
            | Outcome::Requeue { .. }
            | Outcome::Expired
            | Outcome::Republish
            | Outcome::Release => None,
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

/// Returns the failure for a skip that no retry avoids. Skips because of a limit of the crawl or of another
/// page's state are not passed to programs.
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
