//! One URL from its slot to its outcome.

mod identity;
mod items;
mod read;
mod response;
mod without;

use tracing::debug;
use trawl_common::frontier::outcome::{Failure, Outcome, Skip};
use trawl_common::politeness::permit::HostPermit;
use trawl_common::ports::Response;

pub(super) use self::response::status;
pub(super) use self::without::hand_over;

use self::read::read;
use self::response::response;
use self::without::without_page;
use crate::handlers::NoPage;
use crate::history::History;
use crate::job::Job;
use crate::settlement::Settlement;
use crate::shared::Shared;

/// 1. Looks up what is remembered of the page, if its crawl fetches pages again.
/// 2. Looks into the response cache.
/// 3. Fetches, one redirect after another.
/// 4. Keeps the response.
/// 5. Extracts, unless its spider's program reads it: that takes its own time, after all this. So does a program that wants to know
///    why there is no page.
///
/// What follows from the outcome is `settle`'s business.
pub(crate) async fn process(shared: &Shared, mut job: Job, permit: HostPermit) -> Processed {
    let history = History::of(shared, &job).await;
    if let Some(skip) = history.reason_to_skip() {
        return Processed::Settled(Settlement::of(job, Outcome::Skipped(skip)));
    }
    let response = match response(shared, &mut job, &history, permit).await {
        Ok(response) => response,
        Err(outcome) => {
            return match NoPage::of(&job, outcome) {
                Ok(no_page) => Processed::Without(Box::new((job, no_page))),
                Err(outcome) => Processed::Settled(without_page(job, history, outcome)),
            };
        }
    };
    let fetched = Fetched { job, history, response };
    match fetched.job.reader().is_some() {
        true => Processed::ForProgram(Box::new(fetched)),
        false => Processed::Settled(fetched.settled(shared).await),
    }
}

/// How far a page has come.
pub(crate) enum Processed {
    /// It is known what becomes of it.
    Settled(Settlement),
    /// It is here, and its spider's program is to read it.
    ForProgram(Box<Fetched>),
    /// There is none, and its spider's program is to take in why.
    Without(Box<(Job, NoPage)>),
}

/// A page that is here.
pub(crate) struct Fetched {
    job: Job,
    history: History,
    response: Response,
}

impl Fetched {
    /// What becomes of it, when it has been read.
    pub(crate) async fn settled(self, shared: &Shared) -> Settlement {
        let Self { job, history, response } = self;
        match read(shared, &job, &history, response).await {
            Ok(Some((yielded, memory))) => Settlement::done(job, yielded, memory),
            Ok(None) => Settlement::of(job, Outcome::Skipped(Skip::ContentType)),
            Err(outcome) => Settlement::of(job, outcome),
        }
    }
}

fn failed(shared: &Shared, job: &Job, failure: Failure) -> Outcome {
    debug!(url = %job.url, class = %failure.class, status = failure.status, error = failure.detail, "failed");
    job.failed(&shared.settings.retry, failure)
}
