//! Jobs that end without a page.

use std::sync::Arc;

use bytes::Bytes;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Skip};
use trawl_common::handler::stream::FailureView;
use trawl_common::ports::{Page, PageVisit};
use trawl_common::spider::ItemCounts;
use trawl_common::spider::item::Change;
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;

use super::history::RememberedPage;
use super::items::gone;
use super::read::{ask_program, given, not_run, program_failed};
use crate::fetch::Fetching;
use crate::job::ClaimedUrl;
use crate::job::FailureForProgram;
use crate::job::page_output::PageOutput;
use crate::job::settlement::Settlement;
use crate::programs::{Came, Unread};

/// Settles a job without a page. A remembered page that is gone ends as done, with items that say so.
pub(super) fn without_page(job: ClaimedUrl, history: RememberedPage, outcome: Outcome) -> Settlement {
    let status = if let Outcome::Failed(failure, _) = &outcome { failure.status } else { None };
    let (Some(last), Some(status)) = (history.gone(&outcome), status) else {
        let memory = history.without_items(&outcome);
        return Settlement::from_job(job, outcome).remembering(memory);
    };
    let gone = gone(&job, last, status);
    let items = ItemCounts::new(&job.spider.spider, &gone, 0).with_change(Some(Change::Gone));
    let page = Some(Page::new(&job.message, gone));
    let (file, links, elsewhere, left_out, landed, bytes, missing) = Default::default();
    let spider = Arc::clone(&job.spider);
    let status = Some(status);
    let output =
        PageOutput { spider, page, file, links, elsewhere, left_out, landed, status, items, bytes, missing };
    Settlement::done(job, output, Some(PageVisit::Gone))
}

/// Has the program of a job's spider handle a failure. If it does, the request is done.
pub(in crate::fetch) async fn hand_over(
    fetching: &Fetching,
    job: ClaimedUrl,
    failure: FailureForProgram,
) -> Settlement {
    fetching.url_log.log_hand_over(&job.message, &failure.view);
    match taken_in(fetching, &job, failure).await {
        Ok(output) => Settlement::done(job, output, None),
        Err(outcome) => Settlement::from_job(job, outcome),
    }
}

async fn taken_in(
    fetching: &Fetching,
    job: &ClaimedUrl,
    FailureForProgram { outcome, view }: FailureForProgram,
) -> Result<PageOutput, Outcome> {
    // A `FailureForProgram` is only made if there is a program.
    let Some(program) = job.reader() else { return Err(outcome) };
    let landed = job.redirected_to();
    match ask_program(program, fetching, job, landed.as_ref(), Came::Failure(&view)).await? {
        Ok(reading) => {
            let (history, nothing) = (RememberedPage::new(fetching, job).await?, no_response(job, &view));
            given(fetching, job, &history, nothing, reading).await.map(|(output, _)| output)
        }
        Err(unread) => Err(not_taken_in(fetching, job, outcome, unread)),
    }
}

/// Returns the outcome of a request whose failure its program has not handled.
fn not_taken_in(fetching: &Fetching, job: &ClaimedUrl, outcome: Outcome, unread: Unread) -> Outcome {
    match (unread, outcome) {
        (Unread::Skipped, Outcome::Skipped(skip)) => Outcome::Skipped(skip),
        (Unread::Skipped, _) => Outcome::Skipped(Skip::Handler),
        // The program agrees that it is a failure, and wants a retry.
        (Unread::SaysFailed(_), Outcome::Failed(failure, _) | Outcome::Retry { failure, .. }) => {
            job.failed_for_now(&fetching.context.settings.retry, failure)
        }
        (Unread::SaysFailed(own), _) => program_failed(fetching, job, own),
        (Unread::Failed(own), outcome) => program_failed(fetching, job, over(own, &outcome)),
        (Unread::NotRun(why), _) => not_run(fetching, job, why),
    }
}

/// Adds the original failure to the program's own.
fn over(own: Failure, outcome: &Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure, _) | Outcome::Retry { failure, .. } => {
            Failure::new(Class::Handler, format_args!("{}, given the failure `{failure}`", own.detail))
        }
        _ => own,
    }
}

/// Returns a placeholder for the response, for the items of a failure.
fn no_response(job: &ClaimedUrl, view: &FailureView) -> Response {
    Response {
        status: view.status.unwrap_or_default(),
        headers: Headers::default(),
        redirected_to: job.redirected_to(),
        fetched_at: UnixMs::now(),
        address: None,
        body: Bytes::new(),
    }
}
