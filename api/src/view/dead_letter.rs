//! Dead letters and requests.

use serde::Serialize;
use trawl_common::dead_letters::Failed;
use trawl_common::frontier::dead_letter::DeadLetterEntry;
use trawl_common::frontier::{Work, outcome};
use trawl_common::request::RequestView;
use utoipa::ToSchema;

use super::{Reason, Time};

/// A URL that failed, or a text that is not a URL
#[derive(Serialize, ToSchema)]
pub(crate) struct DeadLetter {
    url: String,
    crawl: String,
    spider: String,
    #[schema(value_type = Reason)]
    reason: outcome::Reason,
    /// The kind of the last failure
    class: Option<String>,
    /// The last HTTP status
    status: Option<u16>,
    /// The last error
    error: String,
    /// The number of attempts
    attempts: u32,
    /// The worker that gave up on it
    worker: Option<String>,
    failed_at: Time,
    /// The lane that it came through
    lane: String,
    /// The number of links from the start of the crawl
    depth: u16,
    /// The page that linked to it
    referrer: Option<String>,
    /// The request, if it is one; only in the response for a single URL, not in lists
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request: Option<Request>,
}

impl DeadLetter {
    /// Adds the request.
    pub(crate) fn asking(self, work: Option<&Work>) -> Self {
        let request = work.and_then(Work::request).map(|request| RequestView::from(&request.new).into());
        Self { request, ..self }
    }
}

/// A request. The values of header fields and cookies may be secrets, so only their names are shown; of the
/// body only the length
#[derive(Serialize, ToSchema)]
pub(crate) struct Request {
    method: String,
    /// The names of the header fields, in lower case
    headers: Vec<String>,
    cookies: Vec<String>,
    body_bytes: usize,
    /// JSON passed to the spider's program with the page
    data: Option<serde_json::Value>,
    /// Whether a response with any status is its page; left out if not
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    any_status: bool,
    /// The failures that the program is given in place of a page, `last` or `each`; left out if none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failures: Option<String>,
    /// The priority; above 0 it is urgent
    priority: f64,
    /// The maximum number of retries, if the request sets one
    retries: Option<u32>,
}

impl From<RequestView> for Request {
    fn from(view: RequestView) -> Self {
        Self {
            method: view.method.to_string(),
            headers: view.headers,
            cookies: view.cookies,
            body_bytes: view.body_bytes,
            data: view.data,
            any_status: view.any_status,
            failures: view.failures.map(|failures| failures.to_string()),
            priority: view.priority.get(),
            retries: view.retries,
        }
    }
}

impl From<Failed> for DeadLetter {
    fn from(Failed { crawl, url, note }: Failed) -> Self {
        let DeadLetterEntry { cause, lane, depth, referrer } = note;
        Self {
            url,
            crawl: crawl.id.to_string(),
            spider: crawl.spider.to_string(),
            reason: cause.reason,
            class: cause.class.map(|class| class.to_string()),
            status: cause.status,
            error: cause.error,
            attempts: cause.attempts,
            worker: cause.worker.map(|worker| worker.to_string()),
            failed_at: cause.failed_at.into(),
            lane: lane.to_string(),
            depth,
            referrer: referrer.map(|referrer| referrer.to_string()),
            request: None,
        }
    }
}
