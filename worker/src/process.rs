//! One URL from its turn to its outcome.

use tracing::debug;
use trawl_common::item::Item;
use trawl_common::outcome::{Failure, Outcome, Skip};
use trawl_common::ports::Response;
use trawl_common::retry;
use trawl_common::time::UnixMs;

use crate::Shared;
use crate::extract::is_html;
use crate::job::Job;
use crate::settle::Settlement;

/// 1. Looks into the response cache.
/// 2. Fetches.
/// 3. Keeps the response.
/// 4. Extracts.
/// 5. Decides on a failure by the retry policy.
///
/// What follows from the outcome is `settle`'s business.
pub(crate) async fn process(shared: &Shared, job: Job) -> Settlement {
    let result = match response(shared, &job).await {
        Ok(response) => item(shared, &job, response).await,
        Err(failure) => Err(failure),
    };
    match result {
        Ok(Some(item)) => Settlement::with_item(job, item),
        Ok(None) => Settlement::of(job, Outcome::Skipped(Skip::ContentType)),
        Err(failure) => {
            debug!(url = %job.message.url, class = %failure.class, status = failure.status, error = failure.detail, "failed");
            let now = UnixMs::now();
            let outcome =
                retry::decide(&shared.settings.retry, failure, job.attempts + 1, now, rand::random());
            Settlement::of(job, outcome)
        }
    }
}

async fn response(shared: &Shared, job: &Job) -> Result<Response, Failure> {
    let url = &job.message.url;
    let ttl = shared.settings.cache.ttl;
    if ttl.is_zero() {
        return shared.fetcher.fetch(url).await;
    }
    // The cache is a help, not a part: its errors are misses.
    if let Ok(Some(response)) = shared.ports.cache.get(url).await {
        return Ok(response);
    }
    let response = shared.fetcher.fetch(url).await?;
    if let Err(error) = shared.ports.cache.put(url, &response, ttl).await {
        debug!(%error, "response not cached");
    }
    Ok(response)
}

/// The page's item; `None` if it is of a kind that no spider reads.
async fn item(shared: &Shared, job: &Job, response: Response) -> Result<Option<Item>, Failure> {
    if !is_html(response.content_type.as_deref(), &response.body) {
        return Ok(None);
    }
    let message = &job.message;
    let status = response.status;
    let base = response.redirected_to.clone().unwrap_or_else(|| message.url.clone());
    let fields = shared.parser.fields(base, response).await?;
    Ok(Some(Item::new(&message.url, &message.crawl, status, message.depth, fields)))
}
