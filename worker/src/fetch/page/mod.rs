//! Processes one URL from its slot to its outcome.

mod cached;
mod file;
mod history;
mod identity;
mod items;
mod links;
mod read;
mod rendered;
mod response;
mod transfer;
mod without;

use std::sync::Arc;

use tracing::debug;
use trawl_common::frontier::outcome::{Failure, Outcome, Skip};
use trawl_common::host_schedules::HostPermit;
use trawl_common::web::response::Response;

pub(super) use self::without::hand_over;

use self::cached::response;
use self::history::RememberedPage;
use self::read::read;
use self::rendered::may_be_rendered;
use self::without::without_page;
use crate::claimed::ClaimedUrl;
use crate::claimed::FailureForProgram;
use crate::claimed::settlement::Settlement;
use crate::fetch::Fetching;
use crate::schedule::sessions::Visit;

/// Processes a URL that has its permits.
///
/// 1. Looks up the remembered state of the page, if its crawl fetches pages again.
/// 2. Looks into the response cache.
/// 3. Fetches, following redirects.
/// 4. Stores the response in the cache.
/// 5. Has a browser render the page, if the spider wants it.
/// 6. Extracts, or has the spider's program read the page.
///
/// A browser and a program take their own time, after all this. The same holds for a program that handles failures.
///
/// A file is downloaded instead: it has no history and no cache, and nothing is extracted from it.
///
/// Acting on the outcome is left to `settle`.
pub(crate) async fn process(fetching: &Fetching, mut claimed: ClaimedUrl, permit: HostPermit) -> Processed {
    if let Some((request, carried)) = claimed.download() {
        return Processed::Settled(file::settled(fetching, claimed, request, carried, permit).await);
    }
    let history = match RememberedPage::new(fetching, &claimed).await {
        Ok(history) => history,
        Err(outcome) => return Processed::Settled(Settlement::from_url(claimed, outcome)),
    };
    if let Some(skip) = history.reason_to_skip() {
        return Processed::Settled(Settlement::from_url(claimed, Outcome::Skipped(skip)));
    }
    let visit = fetching.sessions.visit(&claimed.spider);
    let response = match response(fetching, &mut claimed, &history, permit, visit.as_ref()).await {
        Ok(response) => response,
        Err(outcome) => {
            return match FailureForProgram::new(&claimed, outcome) {
                Ok(failure) => Processed::Without(Box::new((claimed, failure))),
                Err(outcome) => Processed::Settled(without_page(claimed, history, outcome)),
            };
        }
    };
    let fetched = Fetched { claimed, history, response, visit };
    match fetched.claimed.reader().is_some() || may_be_rendered(&fetched.claimed, &fetched.response) {
        true => Processed::ForOthers(Box::new(fetched)),
        false => Processed::Settled(fetched.settled(fetching).await),
    }
}

/// The stage that a page has reached.
pub(crate) enum Processed {
    /// Its outcome is known.
    Settled(Settlement),
    /// It was fetched, and a browser may be to render it, or the spider's program to read it.
    ForOthers(Box<Fetched>),
    /// It failed, and the spider's program is to handle the failure.
    Without(Box<(ClaimedUrl, FailureForProgram)>),
}

/// A fetched page.
pub(crate) struct Fetched {
    claimed: ClaimedUrl,
    history: RememberedPage,
    response: Response,
    visit: Option<Arc<Visit>>,
}

impl Fetched {
    /// Renders the page if its spider wants it, reads it, and returns its settlement.
    pub(crate) async fn settled(self, fetching: &Fetching) -> Settlement {
        let Self { mut claimed, history, response, visit } = self;
        match read(fetching, &mut claimed, &history, response, visit.as_ref()).await {
            Ok(Some((output, memory))) => Settlement::done(claimed, output, memory),
            Ok(None) => Settlement::from_url(claimed, Outcome::Skipped(Skip::ContentType)),
            Err(outcome) => Settlement::from_url(claimed, outcome),
        }
    }
}

fn failed(fetching: &Fetching, claimed: &ClaimedUrl, failure: Failure) -> Outcome {
    debug!(url = %claimed.url, class = %failure.class, status = failure.status, error = failure.detail, "failed");
    claimed.failed(&fetching.context.settings.retry, failure)
}
