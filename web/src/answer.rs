//! The results of requests.

use std::time::Duration;

use bytes::Bytes;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use super::redirect::Redirect;

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A success with its body.
    Page(Response),
    /// The page has not changed since the given validators were received.
    NotModified,
    /// A redirect.
    Redirect(Redirect),
    /// A success with a content type that the spider does not read, so the body was not downloaded.
    Unread {
        /// The HTTP status.
        status: u16,
        /// The `Content-Type` as sent.
        content_type: String,
    },
}

/// The result of a request for a source.
#[derive(Debug)]
pub enum Opened<S> {
    /// A success: the response without its body, and the body.
    Body(Response, S),
    /// A redirect to a URL that may be requested, as far as can be told without a resolver.
    Redirect(CanonicalUrl),
}

/// The result of a request for a `robots.txt`.
pub(super) enum Hop {
    /// The start of a response.
    Start(BodyStart),
    /// A redirect.
    Redirect(CanonicalUrl),
}

/// The start of a response of any status.
#[derive(Debug)]
pub(super) struct BodyStart {
    pub(super) status: u16,
    /// The first bytes of the decoded body of a success; empty for other statuses.
    pub(super) body: Bytes,
    /// The wait requested by the server (`Retry-After`, RFC 9110 10.2.3).
    pub(super) retry_after: Option<Duration>,
}
