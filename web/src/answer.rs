//! What comes of a request.

use std::time::Duration;

use bytes::Bytes;
use trawl_common::ports::Response;
use trawl_common::web::url::CanonicalUrl;

use super::redirect::Redirect;

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A success, with its body.
    Page(Response),
    /// It is as it was when these validators came.
    NotModified,
    /// Elsewhere.
    Redirect(Redirect),
    /// A success of a content type that the spider does not read, so its body was not downloaded.
    Unread {
        /// The HTTP status.
        status: u16,
        /// The kind: the `Content-Type` as sent.
        content_type: String,
    },
}

/// What came of one request for a source.
#[derive(Debug)]
pub enum Opened<S> {
    /// A success: the answer without its body, and the body.
    Body(Response, S),
    /// Elsewhere: a URL that may be asked, as far as it shows without asking a resolver.
    Redirect(CanonicalUrl),
}

/// What came of one request for a `robots.txt`.
pub(super) enum Hop {
    /// The start of an answer.
    Start(Start),
    /// Elsewhere.
    Redirect(CanonicalUrl),
}

/// The start of an answer, whatever its status.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) status: u16,
    /// The first bytes of the decoded body of a success; of nothing else is it read.
    pub(super) body: Bytes,
    /// The wait that the server asked for (`Retry-After`, RFC 9110 10.2.3).
    pub(super) retry_after: Option<Duration>,
}
