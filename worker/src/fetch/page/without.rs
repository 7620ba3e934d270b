//! Jobs that end without a page.

use std::sync::Arc;

use bytes::Bytes;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Skip};
use trawl_common::handler::stream::FailureView;
use trawl_common::ports::{Memory, Page};
use trawl_common::spider::ItemCounts;
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;

use super::items::gone;
use super::read::{ask_program, given, program_failed};
use crate::handlers::{Came, NoPage, Unread, not_run};
use crate::history::History;
use crate::job::Job;
use crate::settlement::{Settlement, Yield};
use crate::shared::Shared;

/// Settles a job without a page. A remembered page that is gone ends as done, with items that say so.
pub(super) fn without_page(job: Job, history: History, outcome: Outcome) -> Settlement {
    let status = if let Outcome::Failed(failure, _) = &outcome { failure.status } else { None };
    let (Some(last), Some(status)) = (history.gone(&outcome), status) else {
        let memory = history.memory(&outcome);
        return Settlement::remembered(job, outcome, memory);
    };
    let gone = gone(&job, last, status);
    let items = ItemCounts::of(&job.spider.spider, &gone, 0);
    let page = Some(Page::of(&job.message, gone));
    let (file, links, elsewhere, left_out, landed, bytes, missing) = Default::default();
    let spider = Arc::clone(&job.spider);
    let status = Some(status);
    let yielded =
        Yield { spider, page, file, links, elsewhere, left_out, landed, status, items, bytes, missing };
    Settlement::done(job, yielded, Some(Memory::Gone))
}

/// Has the program of a job's spider handle a failure. If it does, the request is done.
pub(in crate::fetch) async fn hand_over(shared: &Shared, job: Job, no_page: NoPage) -> Settlement {
    shared.url_log.hands_over(&job.message, &no_page.view);
    match taken_in(shared, &job, no_page).await {
        Ok(yielded) => Settlement::done(job, yielded, None),
        Err(outcome) => Settlement::of(job, outcome),
    }
}

async fn taken_in(shared: &Shared, job: &Job, NoPage { outcome, view }: NoPage) -> Result<Yield, Outcome> {
    // A `NoPage` is only made if there is a program.
    let Some(program) = job.reader() else { return Err(outcome) };
    let landed = job.redirected_to();
    match ask_program(program, shared, job, landed.as_ref(), Came::Failure(&view)).await? {
        Ok(reading) => {
            let (history, nothing) = (History::of(shared, job).await?, no_response(job, &view));
            given(shared, job, &history, nothing, reading).await.map(|(yielded, _)| yielded)
        }
        Err(unread) => Err(not_taken_in(shared, job, outcome, unread)),
    }
}

/// Returns the outcome of a request whose failure its program has not handled.
fn not_taken_in(shared: &Shared, job: &Job, outcome: Outcome, unread: Unread) -> Outcome {
    match (unread, outcome) {
        (Unread::Skipped, Outcome::Skipped(skip)) => Outcome::Skipped(skip),
        (Unread::Skipped, _) => Outcome::Skipped(Skip::Handler),
        // The program agrees that it is a failure, and wants a retry.
        (Unread::SaysFailed(_), Outcome::Failed(failure, _) | Outcome::Retry(failure, _)) => {
            job.failed_for_now(&shared.settings.retry, failure)
        }
        (Unread::SaysFailed(own), _) => program_failed(shared, job, own),
        (Unread::Failed(own), outcome) => program_failed(shared, job, over(own, &outcome)),
        (Unread::NotRun(why), _) => not_run(shared, &job.spider, &job.message, why),
    }
}

/// Adds the original failure to the program's own.
fn over(own: Failure, outcome: &Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure, _) | Outcome::Retry(failure, _) => {
            Failure::new(Class::Handler, format_args!("{}, given the failure `{failure}`", own.detail))
        }
        _ => own,
    }
}

/// Returns a placeholder for the response, for the items of a failure.
fn no_response(job: &Job, view: &FailureView) -> Response {
    Response {
        status: view.status.unwrap_or_default(),
        headers: Headers::default(),
        redirected_to: job.redirected_to(),
        fetched_at: UnixMs::now(),
        address: None,
        body: Bytes::new(),
    }
}
