//! The logging of URLs: failures and retries in the fleet's log, final failures in the worker's own, and
//! every URL there if `log.urls` is set.

use std::time::Duration;

use tracing::info;
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::Work;
use trawl_common::frontier::dead_letter::Cause;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Outcome, Reason};
use trawl_common::handler::stream::FailureView;
use trawl_common::logs::{LogEntry, LogLevel};
use trawl_common::settings::Settings;

use crate::claimed::ClaimedUrl;
use crate::claimed::settlement::Handled;

/// Logs the outcomes of URLs.
pub(crate) struct UrlLog {
    /// Whether each URL is logged.
    urls: bool,
    log: LogWriter,
}

impl UrlLog {
    pub(crate) fn new(settings: &Settings, log: LogWriter) -> Self {
        Self { urls: settings.log.urls, log }
    }

    /// Logs that a fetch starts.
    pub(crate) fn log_start(&self, claimed: &ClaimedUrl) {
        if self.urls {
            let Message { work, crawl, .. } = &claimed.message;
            info!(url = %work, method = method(work), crawl = %crawl.id, "fetching");
        }
    }

    /// Logs the outcome of a URL, if it is an end or a failure. Dead letters are [logged](Self::dead_letter)
    /// when they are written.
    pub(crate) fn log_settlement(&self, handled: &Handled) {
        if let Err(Outcome::Retry { failure, until, max }) = &handled.result
            && self.log.is_on()
        {
            let text = format!("retry {}/{max} at {until}: {}", handled.attempts + 1, failure.detail);
            self.write(LogLevel::Debug, &handled.message, Some(failure.class), text);
        }
        if !self.urls {
            return;
        }
        let (url, ms) = (&handled.message.work, milliseconds(handled.took.unwrap_or_default()));
        match &handled.result {
            Ok(output) => {
                let (status, bytes, items) = (output.status.unwrap_or(0), output.bytes, output.items.total());
                info!(%url, status, ms, bytes, items, "finished");
            }
            Err(Outcome::Skipped(skip)) => info!(%url, why = skip.as_str(), ms, "skipped"),
            Err(Outcome::Retry { failure, until, max }) => {
                let retry = format!("{}/{max}", handled.attempts + 1);
                info!(%url, retry, why = %failure, ms, %until, "retrying");
            }
            Err(
                Outcome::Failed(..)
                | Outcome::Expired
                | Outcome::Snooze { .. }
                | Outcome::Requeue { .. }
                | Outcome::Republish
                | Outcome::Release,
            ) => {}
        }
    }

    /// Logs that the program of a request's spider is given a failure.
    pub(crate) fn log_hand_over(&self, message: &Message, failure: &FailureView) {
        let FailureView { class, detail, attempt, .. } = failure;
        if self.urls {
            info!(url = %message.work, attempt, class, why = detail, "handing the failure to the program");
        }
        if self.log.is_on() {
            let text = format!("attempt {attempt}, the failure is handed to the program: {detail}");
            let entry = self.log.entry(LogLevel::Debug, text).about_work(message);
            self.log.write(LogEntry::of_class(entry, class));
        }
    }

    /// Logs that a URL became a dead letter.
    pub(crate) fn dead_letter(&self, message: &Message, cause: &Cause) {
        info!(
            url = %message.work, method = method(&message.work), crawl = %message.crawl.id, reason = %cause.reason, error = cause.error,
            attempts = cause.attempts, "dead letter"
        );
        if self.log.is_on() {
            // Expiry does not mean that something is broken.
            let level = if cause.reason == Reason::Expired { LogLevel::Warn } else { LogLevel::Error };
            let Cause { reason, attempts, error, .. } = cause;
            let text = format!("dead letter, {reason}, attempts {attempts}: {error}");
            self.write(level, message, cause.class, text);
        }
    }

    fn write(&self, level: LogLevel, message: &Message, class: Option<Class>, text: String) {
        let entry = self.log.entry(level, text).about_work(message);
        self.log.write(match class {
            Some(class) => LogEntry::of_class(entry, class.as_str()),
            None => entry,
        });
    }
}

/// The method of a request, which its key does not show.
fn method(work: &Work) -> Option<&'static str> {
    work.request().map(|request| request.new.method.as_str())
}

fn milliseconds(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::Task;
    use trawl_common::frontier::lane::Lane;
    use trawl_common::frontier::outcome::Failure;
    use trawl_common::frontier::retry::Retry;
    use trawl_common::names::CrawlRef;
    use trawl_common::request::NewRequest;
    use trawl_common::task::NewTask;

    use super::*;
    use crate::claimed::settlement::Settlement;
    use crate::tests::log::OwnLog;

    #[tokio::test]
    async fn a_retry_is_one_of_those_that_the_task_or_the_request_itself_may_have() {
        let log = OwnLog::new();
        let urls = UrlLog::new(&Settings::default(), log.writer.clone());
        let crawl = CrawlRef::adhoc();
        let task = |retries| {
            let new = NewTask { retries, ..NewTask::from_recipe("do it".parse().unwrap()) };
            Message::new(Task::new(&crawl.spider, new).into(), crawl.clone(), Lane::Task)
        };
        let request = NewRequest { retries: Some(9), ..NewRequest::get("/") };
        let work = Work::of_request("http://a.example/".parse().unwrap(), request).unwrap();
        let request = Message::new(work, crawl.clone(), Lane::Bulk);
        for message in [task(Some(7)), task(None), request] {
            let failure = Failure::new(Class::Handler, "no");
            let settlement = Settlement::new(message, Outcome::Release).failed(Retry::default(), failure);
            urls.log_settlement(&settlement.into_handled());
        }
        let said: Vec<String> =
            log.entries().await.into_iter().map(|entry| entry.message.as_str().to_owned()).collect();
        let usually = format!("retry 1/{} at", Retry::default().max);
        let starts = ["retry 1/7 at", &usually, "retry 1/9 at"];
        assert!(
            said.len() == 3 && said.iter().zip(starts).all(|(said, start)| said.starts_with(start)),
            "{said:?}"
        );
    }
}
