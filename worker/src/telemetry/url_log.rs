//! The logging of URLs: failures and retries in the fleet's log, final failures in the worker's own, and
//! every URL there if `log.urls` is set.

use std::time::Duration;

use tracing::info;
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::Work;
use trawl_common::frontier::dead_letter::Cause;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Reason};
use trawl_common::handler::stream::FailureView;
use trawl_common::logs::{LogEntry, LogLevel};
use trawl_common::settings::Settings;
use trawl_common::time::UnixMs;

use crate::job::ClaimedUrl;
use crate::job::settlement::{Disposition, Handled};

/// Logs the outcomes of URLs.
pub(crate) struct UrlLog {
    /// Whether each URL is logged.
    urls: bool,
    /// The default number of retries.
    retries: u32,
    log: LogWriter,
}

impl UrlLog {
    pub(crate) fn new(settings: &Settings, log: LogWriter) -> Self {
        Self { urls: settings.log.urls, retries: settings.retry.max, log }
    }

    /// Logs that a fetch starts.
    pub(crate) fn begins(&self, job: &ClaimedUrl) {
        if self.urls {
            let Message { work, crawl, .. } = &job.message;
            info!(url = %work, method = method(work), crawl = %crawl.id, "fetching");
        }
    }

    /// Logs the outcome of a URL, if it is an end or a failure. Dead letters are [logged](Self::dead_letter)
    /// when they are written.
    pub(crate) fn settles(&self, handled: &Handled) {
        if let Disposition::Retry { failure, until } = &handled.disposition {
            self.retries(handled, failure, *until);
        }
        if !self.urls {
            return;
        }
        let (url, ms) = (&handled.message.work, milliseconds(handled.took.unwrap_or_default()));
        match &handled.disposition {
            Disposition::Done { output, .. } => {
                let (status, bytes, items) = (output.status.unwrap_or(0), output.bytes, output.items.total());
                info!(%url, status, ms, bytes, items, "finished");
            }
            Disposition::Skipped { skip, .. } => info!(%url, why = skip.as_str(), ms, "skipped"),
            Disposition::Retry { failure, until } => {
                let retry = self.retry(handled, failure);
                info!(%url, retry, why = %failure, ms, %until, "retrying");
            }
            Disposition::Failed { .. }
            | Disposition::Expired
            | Disposition::Snooze { .. }
            | Disposition::Requeue { .. }
            | Disposition::Republish
            | Disposition::Release => {}
        }
    }

    fn retries(&self, handled: &Handled, failure: &Failure, until: UnixMs) {
        if self.log.is_on() {
            let text = format!("retry {} at {until}: {}", self.retry(handled, failure), failure.detail);
            self.write(LogLevel::Debug, &handled.message, Some(failure.class), text);
        }
    }

    /// Formats the number of a retry and the maximum: `2/3`. Failures of a program, requests and spiders may have
    /// their own maximum.
    fn retry(&self, handled: &Handled, failure: &Failure) -> String {
        let of_program = handled.retries.filter(|_| failure.class == Class::Handler);
        let own = handled.message.work.retries().or(of_program).or(handled.spider_retries);
        format!("{}/{}", handled.attempts + 1, own.unwrap_or(self.retries))
    }

    /// Logs that the program of a request's spider is given a failure.
    pub(crate) fn hands_over(&self, message: &Message, failure: &FailureView) {
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
    use trawl_common::names::CrawlRef;
    use trawl_common::request::NewRequest;
    use trawl_common::task::NewTask;

    use super::*;
    use crate::job::settlement::Settlement;
    use crate::tests::log::OwnLog;

    #[tokio::test]
    async fn a_retry_is_one_of_those_that_the_task_or_the_request_itself_may_have() {
        let log = OwnLog::new();
        let urls = UrlLog::new(&Settings::default(), log.writer.clone());
        let crawl = CrawlRef::adhoc();
        let task = Task::new(&crawl.spider, NewTask::from_recipe("do it".parse().unwrap()));
        let message = Message::new(task.into(), crawl, Lane::Task);
        for (class, retries) in [(Class::Handler, Some(7)), (Class::Handler, None), (Class::Timeout, Some(7))]
        {
            let retry = Disposition::Retry { failure: Failure::new(class, "no"), until: UnixMs(0) };
            let settlement = Settlement::new(message.clone(), retry).with_retries(retries);
            urls.settles(&settlement.into_handled());
        }
        let request = NewRequest { retries: Some(9), ..NewRequest::get("/") };
        let work = Work::of_request("http://a.example/".parse().unwrap(), request).unwrap();
        let message = Message::new(work, CrawlRef::adhoc(), Lane::Bulk);
        let retry = Disposition::Retry { failure: Failure::new(Class::Timeout, "no"), until: UnixMs(0) };
        urls.settles(&Settlement::new(message, retry).into_handled());
        let said: Vec<String> =
            log.entries().await.into_iter().map(|entry| entry.message.as_str().to_owned()).collect();
        let usual = Settings::default().retry.max;
        let usually = format!("retry 1/{usual} at");
        let starts = ["retry 1/7 at", &usually, &usually, "retry 1/9 at"];
        assert!(
            said.len() == 4 && said.iter().zip(starts).all(|(said, start)| said.starts_with(start)),
            "{said:?}"
        );
    }
}
