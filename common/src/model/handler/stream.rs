//! Requests to a program that keeps running, one JSON object per line.

use serde::Serialize;
use serde_json::Value;

use crate::names::{CrawlId, ProjectName, SpiderName};
use crate::request::Method;
use crate::task::TaskView;

pub use super::answer::{InvalidParts, Parts};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Maximum size of a body that is sent inline; a larger one is given as a file.
pub const MAX_INLINE_BYTES: usize = 1024 * 1024;

/// A request to a program.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Request<'a> {
    /// Sent once, before all others.
    Start(StartMessage<'a>),
    /// Do this task.
    Task {
        /// The id that the answer repeats.
        id: u64,
        /// The task.
        task: &'a TaskView,
    },
    /// Read this page, or learn why there is none.
    Page {
        /// The id that the answer repeats.
        id: u64,
        /// The page.
        page: PageView<'a>,
    },
}

impl Request<'_> {
    /// Returns the request as a line, including its end.
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("names, text and numbers are JSON");
        line.push('\n');
        line
    }
}

/// The first message to a program.
#[derive(Debug, Serialize)]
pub struct StartMessage<'a> {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The project of the spider.
    pub project: &'a ProjectName,
    /// The spider of the program.
    pub spider: &'a SpiderName,
    /// Maximum number of unanswered requests.
    pub concurrency: usize,
    /// Whether the spider's file says `concurrency`: without that no program need expect to do several things at once.
    pub parallel: bool,
    /// The value of `[handler] secret`.
    pub secret: &'a Value,
}

/// A page as a program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PageView<'a> {
    /// The page's URL and where it comes from.
    #[serde(flatten)]
    pub head: &'a PageHead,
    /// The result of the request.
    #[serde(flatten)]
    pub came: Came<'a>,
}

/// The result of the request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Came<'a> {
    /// A response.
    Response {
        /// Everything except its body.
        #[serde(flatten)]
        head: &'a ResponseHead,
        /// Its body.
        #[serde(flatten)]
        body: &'a Body,
    },
    /// No response that is a page.
    Failure {
        /// The failure.
        failure: &'a FailureView,
    },
}

/// The URL of a page and where it comes from, whatever the result of the request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageHead {
    /// The URL that was requested.
    pub url: String,
    /// The method, if not GET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// The data of its request, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The URL to which redirects led, if they did: links are relative to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The crawl.
    pub crawl: CrawlId,
    /// Number of links from the start.
    pub depth: u16,
    /// The page that linked to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referrer: Option<String>,
}

/// A response without its body.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResponseHead {
    /// The HTTP status.
    pub status: u16,
    /// Its header fields, each a name in lower case and a value, in order.
    pub headers: Vec<(String, String)>,
    /// When it arrived, RFC 3339.
    pub fetched_at: String,
}

/// The reason why there is no page, for a program whose request asks for failures
/// ([`Failures`](crate::request::Failures)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureView {
    /// The class of the failure ([`Class`](crate::frontier::outcome::Class)), or for a skipped page the reason
    /// ([`Skip`](crate::frontier::outcome::Skip)).
    pub class: &'static str,
    /// Whether the page is skipped, and would be at every attempt.
    pub skipped: bool,
    /// A description for people, printable and at most 1 KB.
    pub detail: String,
    /// The HTTP status, if there was a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// The body of a page, under one of three keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes that are no text, in base64 (RFC 4648 4).
    Base64(String),
    /// The path of a file with the bytes of a large body. The file is removed when the page is answered.
    File(String),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_one_line_with_fixed_names() {
        let head = PageHead {
            url: "http://a.example/".to_owned(),
            method: None,
            data: None,
            final_url: None,
            crawl: "c".parse().unwrap(),
            depth: 1,
            referrer: None,
        };
        let response = ResponseHead {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/html".to_owned())],
            fetched_at: "2026-01-01T00:00:00Z".to_owned(),
        };
        let body = Body::Text("<p>\n\u{2028}</p>".to_owned());
        let came = Came::Response { head: &response, body: &body };
        let line = Request::Page { id: 7, page: PageView { head: &head, came } }.to_line();
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        let expected = json!({ "type": "page", "id": 7, "page": {
            "url": "http://a.example/", "crawl": "c", "status": 200, "headers": [["content-type", "text/html"]],
            "fetched_at": "2026-01-01T00:00:00Z", "depth": 1, "text": "<p>\n\u{2028}</p>",
        } });
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
        let failure = FailureView {
            class: "dns",
            skipped: false,
            detail: "no such host".to_owned(),
            status: None,
            attempt: 4,
        };
        let came = Came::Failure { failure: &failure };
        let line = Request::Page { id: 8, page: PageView { head: &head, came } }.to_line();
        let expected = json!({ "type": "page", "id": 8, "page": {
            "url": "http://a.example/", "crawl": "c", "depth": 1,
            "failure": { "class": "dns", "skipped": false, "detail": "no such host", "attempt": 4 },
        } });
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
        let (project, spider, secret) = (ProjectName::default(), SpiderName::default(), json!({ "K": "v" }));
        let start = StartMessage {
            protocol: PROTOCOL,
            project: &project,
            spider: &spider,
            concurrency: 4,
            parallel: true,
            secret: &secret,
        };
        let expected = json!({
            "type": "start", "protocol": 1, "project": "default", "spider": "default", "concurrency": 4, "parallel": true,
            "secret": { "K": "v" },
        });
        assert_eq!(serde_json::from_str::<Value>(&Request::Start(start).to_line()).unwrap(), expected);
    }
}
