//! What a worker logs of each URL, if `log.urls` is set. That a URL became a dead letter is always logged.

use std::time::Duration;

use tracing::info;
use trawl_common::frontier::outcome::Outcome;
use trawl_common::settings::Settings;

use crate::job::Job;
use crate::settlement::Handled;

/// Logs each URL, or none.
pub(crate) struct UrlLog {
    urls: bool,
    /// How often a URL is tried again.
    retries: u32,
}

impl UrlLog {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { urls: settings.log.urls, retries: settings.retry.max }
    }

    /// A fetch begins.
    pub(crate) fn begins(&self, job: &Job) {
        if self.urls {
            info!(url = %job.url, crawl = %job.message.crawl.id, "processing");
        }
    }

    /// What became of a URL, as far as that is an end or a failure: its turn may come later without either.
    pub(crate) fn settles(&self, handled: &Handled) {
        if !self.urls {
            return;
        }
        let (url, took) = (&handled.message.work, handled.took.unwrap_or_default());
        let ms = milliseconds(took);
        match &handled.outcome {
            Outcome::Done => {
                let (status, bytes) = handled
                    .yielded
                    .as_ref()
                    .map_or((0, 0), |yielded| (yielded.status.unwrap_or(0), yielded.bytes));
                info!(%url, status, ms, bytes, "finished");
            }
            Outcome::Skipped(skip) => info!(%url, why = skip.as_str(), ms, "skipped"),
            Outcome::Retry(failure, until) => {
                let retry = format!("{}/{}", handled.attempts + 1, self.retries);
                info!(%url, retry, why = %failure, ms, %until, "retrying");
            }
            Outcome::Failed(..)
            | Outcome::Expired
            | Outcome::Deferred { .. }
            | Outcome::Unready { .. }
            | Outcome::SentAgain
            | Outcome::Released => {}
        }
    }
}

fn milliseconds(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
