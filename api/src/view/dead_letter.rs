//! Dead letters and requests.

use serde::Serialize;
use trawl_common::dead_letters::Failed;
use trawl_common::frontier::dead_letter::Note;
use trawl_common::frontier::{Work, outcome};
use trawl_common::request::RequestView;
use utoipa::ToSchema;

use super::{Reason, Time};

/// A URL that failed, or a text that is none
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
    /// How often it was tried
    attempts: u32,
    /// Who gave up on it
    worker: Option<String>,
    failed_at: Time,
    /// The lane that it came through
    lane: String,
    /// Links away from where the crawl started
    depth: u16,
    /// The page that linked to it
    referrer: Option<String>,
    /// How it asks, if it is a request. It is here where one URL was asked for, not in lists
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request: Option<Request>,
}

impl DeadLetter {
    /// The same with how it asks.
    pub(crate) fn asking(self, work: Option<&Work>) -> Self {
        let request = work.and_then(Work::request).map(|request| RequestView::from(&request.new).into());
        Self { request, ..self }
    }
}

/// How a request asks: of header fields and cookies the names, for their values may be secrets, and of the body how long it is
#[derive(Serialize, ToSchema)]
pub(crate) struct Request {
    method: String,
    /// In lower case
    headers: Vec<String>,
    cookies: Vec<String>,
    body_bytes: usize,
    /// What the spider's program is given with the page: any JSON
    data: Option<serde_json::Value>,
    /// Whether whatever response comes is its page; left out where it is not
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    any_status: bool,
    /// Which failures the program is given in place of a page, `last` or `each`; left out where there are none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failures: Option<String>,
    /// Above 0 it is urgent
    priority: f64,
    /// How often it is tried again, if it says so itself
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
        let Note { cause, lane, depth, referrer } = note;
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
