//! URLs that end without a page.

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
use crate::claimed::ClaimedUrl;
use crate::claimed::FailureForProgram;
use crate::claimed::page_output::PageOutput;
use crate::claimed::settlement::Settlement;
use crate::fetch::Fetching;
use crate::programs::{Came, Unread};

/// Settles a URL without a page. A remembered page that is gone ends as done, with items that say so.
pub(super) fn without_page(claimed: ClaimedUrl, history: RememberedPage, outcome: Outcome) -> Settlement {
    let status = if let Outcome::Failed(failure, _) = &outcome { failure.status } else { None };
    let (Some(last), Some(status)) = (history.gone(&outcome), status) else {
        let memory = history.without_items(&outcome);
        return Settlement::from_url(claimed, outcome).remembering(memory);
    };
    let gone = gone(&claimed, last, status);
    let items = ItemCounts::new(&claimed.spider.spider, &gone, 0).with_change(Some(Change::Gone));
    let page = Some(Page::new(&claimed.message, gone));
    let (file, links, elsewhere, left_out, landed, bytes, missing) = Default::default();
    let spider = Arc::clone(&claimed.spider);
    let status = Some(status);
    let output =
        PageOutput { spider, page, file, links, elsewhere, left_out, landed, status, items, bytes, missing };
    Settlement::done(claimed, output, Some(PageVisit::Gone))
}

/// Has the program of a URL's spider handle a failure. If it does, the request is done.
pub(in crate::fetch) async fn hand_over(
    fetching: &Fetching,
    claimed: ClaimedUrl,
    failure: FailureForProgram,
) -> Settlement {
    fetching.url_log.log_hand_over(&claimed.message, &failure.view);
    match taken_in(fetching, &claimed, failure).await {
        Ok(output) => Settlement::done(claimed, output, None),
        Err(outcome) => Settlement::from_url(claimed, outcome),
    }
}

async fn taken_in(
    fetching: &Fetching,
    claimed: &ClaimedUrl,
    FailureForProgram { outcome, view }: FailureForProgram,
) -> Result<PageOutput, Outcome> {
    // A `FailureForProgram` is only made if there is a program.
    let Some(program) = claimed.reader() else { return Err(outcome) };
    let landed = claimed.redirected_to();
    match ask_program(program, fetching, claimed, landed.as_ref(), Came::Failure(&view)).await? {
        Ok(reading) => {
            let (history, nothing) =
                (RememberedPage::new(fetching, claimed).await?, no_response(claimed, &view));
            given(fetching, claimed, &history, nothing, reading).await.map(|(output, _)| output)
        }
        Err(unread) => Err(not_taken_in(fetching, claimed, outcome, unread)),
    }
}

/// Returns the outcome of a request whose failure its program has not handled.
fn not_taken_in(fetching: &Fetching, claimed: &ClaimedUrl, outcome: Outcome, unread: Unread) -> Outcome {
    match (unread, outcome) {
        (Unread::Skipped, Outcome::Skipped(skip)) => Outcome::Skipped(skip),
        (Unread::Skipped, _) => Outcome::Skipped(Skip::Handler),
        // The program agrees that it is a failure, and wants a retry.
        (Unread::SaysFailed(_), Outcome::Failed(failure, _) | Outcome::Retry { failure, .. }) => {
            claimed.failed_for_now(&fetching.context.settings.retry, failure)
        }
        (Unread::SaysFailed(own), _) => program_failed(fetching, claimed, own),
        (Unread::Failed(own), outcome) => program_failed(fetching, claimed, over(own, &outcome)),
        (Unread::NotRun(why), _) => not_run(fetching, claimed, why),
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
fn no_response(claimed: &ClaimedUrl, view: &FailureView) -> Response {
    Response {
        status: view.status.unwrap_or_default(),
        headers: Headers::default(),
        redirected_to: claimed.redirected_to(),
        fetched_at: UnixMs::now(),
        address: None,
        body: Bytes::new(),
    }
}
