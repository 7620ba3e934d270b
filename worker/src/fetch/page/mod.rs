//! One URL from its slot to its outcome.

mod identity;
mod items;
mod read;
mod response;

use std::sync::Arc;

use tracing::debug;
use trawl_common::frontier::outcome::{Failure, Outcome, Skip};
use trawl_common::politeness::permit::HostPermit;
use trawl_common::ports::{Memory, Page, Response};
use trawl_handlers::Stream;

pub(super) use self::response::status;

use self::items::gone;
use self::read::read;
use self::response::response;
use crate::handlers::Running;
use crate::history::History;
use crate::job::Job;
use crate::settlement::{Settlement, Yield};
use crate::shared::Shared;

/// 1. Looks up what is remembered of the page, if its crawl fetches pages again.
/// 2. Looks into the response cache.
/// 3. Fetches, one redirect after another.
/// 4. Keeps the response.
/// 5. Extracts, unless its spider's program reads it: that takes its own time, after all this.
///
/// What follows from the outcome is `settle`'s business.
pub(crate) async fn process(shared: &Shared, mut job: Job, permit: HostPermit) -> Processed {
    let history = History::of(shared, &job).await;
    if let Some(skip) = history.reason_to_skip() {
        return Processed::Settled(Settlement::of(job, Outcome::Skipped(skip)));
    }
    let response = match response(shared, &mut job, &history, permit).await {
        Ok(response) => response,
        Err(outcome) => return Processed::Settled(without_page(job, history, outcome)),
    };
    let fetched = Fetched { job, history, response };
    match fetched.program().is_some() {
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
}

/// A page that is here.
pub(crate) struct Fetched {
    job: Job,
    history: History,
    response: Response,
}

impl Fetched {
    /// The program that reads it, if one does.
    fn program(&self) -> Option<&Stream> {
        self.job.spider.program.as_ref().and_then(Running::reader)
    }

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

/// What follows from an answer that is no page: one that was remembered and is gone ends as done, with items that say so.
fn without_page(job: Job, history: History, outcome: Outcome) -> Settlement {
    let status = if let Outcome::Failed(failure, _) = &outcome { failure.status } else { None };
    let (Some(last), Some(status)) = (history.gone(&outcome), status) else {
        let memory = history.memory(&outcome);
        return Settlement::remembered(job, outcome, memory);
    };
    let gone = gone(&job, last, status);
    let items = gone.len() as u64;
    let page = Page {
        key: job.message.key(),
        crawl: job.message.crawl.clone(),
        referrer: job.message.referrer.clone(),
        items: gone,
        exchange: None,
    };
    let (file, links, elsewhere, left_out, landed, bytes, missing) = Default::default();
    let spider = Arc::clone(&job.spider);
    let page = Some(page);
    let status = Some(status);
    let yielded =
        Yield { spider, page, file, links, elsewhere, left_out, landed, status, items, bytes, missing };
    Settlement::done(job, yielded, Some(Memory::Gone))
}

fn failed(shared: &Shared, job: &Job, failure: Failure) -> Outcome {
    debug!(url = %job.url, class = %failure.class, status = failure.status, error = failure.detail, "failed");
    job.failed(&shared.settings.retry, failure)
}
