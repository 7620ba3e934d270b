//! The reasons why a source could not be read to its end.

use std::io;
use std::sync::Arc;

use trawl_common::text::counted;

use super::summary::Summary;

/// A source that could not be read to its end, and the totals read before.
#[derive(Debug, thiserror::Error)]
#[error("{fault}, after {}", counted(before.entries(), "entry"))]
pub struct SitemapError {
    /// The cause.
    pub fault: Fault,
    /// The totals emitted until then.
    pub before: Summary,
}

/// A defect of a whole source. A defect of one entry is a [`Flaw`](super::Flaw).
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The source itself failed.
    #[error("cannot read: {0}")]
    Io(io::Error),
    /// The compressed bytes stop in the middle, as after a broken download.
    #[error("gzip stream ends early")]
    GzipEndsEarly,
    /// The compressed bytes are damaged.
    #[error("gzip stream is corrupt: {0}")]
    GzipCorrupt(String),
    /// Gzip inside gzip.
    #[error("compressed twice")]
    GzipTwice,
    /// More than [`Limits::max_bytes`](super::Limits::max_bytes), as sent or unpacked.
    #[error("more than {0} bytes")]
    TooLarge(u64),
    /// More than [`Limits::max_entries`](super::Limits::max_entries).
    #[error("more than {0} entries")]
    TooManyEntries(u64),
    /// Another kind of XML, or HTML.
    #[error("root element `{0}` is neither a sitemap's nor a feed's")]
    UnknownRoot(String),
    /// JSON that is not a list of requests.
    #[error(
        "this is JSON, and no sitemap or list of URLs. Requests, one a line, are objects with `url`; tasks are for a spider with a [handler]: --spider NAME"
    )]
    Json,
    /// XML without an element.
    #[error("no root element")]
    NoRoot,
    /// XML that ends too early.
    #[error("XML ends before its root element is closed")]
    XmlEndsEarly,
    /// XML that is not well-formed.
    #[error("malformed XML at byte {byte}: {reason}")]
    Malformed {
        /// The position in the source, counted after decompression and in UTF-8.
        byte: u64,
        /// The defect at that position.
        reason: String,
    },
    /// Elements nested too deeply.
    #[error("elements nested deeper than {0}")]
    TooDeep(usize),
    /// An element's name that is too long.
    #[error("a name longer than {0} bytes")]
    LongName(usize),
    /// A tag, comment, CDATA section or document type that is too long.
    #[error("markup longer than {0} bytes")]
    LongMarkup(usize),
}

impl From<io::Error> for Fault {
    /// Unwraps the fault that an underlying reader has put into `error`.
    fn from(error: io::Error) -> Self {
        error.downcast().unwrap_or_else(Self::Io)
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        Self::other(fault)
    }
}

impl Fault {
    /// Returns the fault behind `error`, which the XML parser found at `byte`.
    pub(super) fn of_xml(error: quick_xml::Error, byte: u64) -> Self {
        match error {
            quick_xml::Error::Io(error) => match Arc::try_unwrap(error) {
                Ok(error) => error.into(),
                Err(shared) => Self::Io(io::Error::new(shared.kind(), shared.to_string())),
            },
            other => Self::Malformed { byte, reason: other.to_string() },
        }
    }
}
