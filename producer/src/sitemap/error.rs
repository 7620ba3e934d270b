//! Why the reading of a source ended before the source did.

use std::io;
use std::sync::Arc;

use super::summary::Summary;

/// A source that could not be read to its end, and what was read of it before.
#[derive(Debug, thiserror::Error)]
#[error("{fault}, after {} entries", before.entries())]
pub struct SitemapError {
    /// What went wrong.
    pub fault: Fault,
    /// What was emitted until then.
    pub before: Summary,
}

/// What goes wrong with a whole source; what is wrong with one entry is a [`Flaw`](super::Flaw).
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
    /// XML of another kind, or HTML.
    #[error("root element `{0}` is neither a sitemap's nor a feed's")]
    UnknownRoot(String),
    /// JSON, and no list of requests.
    #[error(
        "this is JSON, and no sitemap or list of URLs. Requests, one a line, are objects with `url`; tasks are for a spider with a [handler]: --spider NAME"
    )]
    Json,
    /// XML without an element.
    #[error("no root element")]
    NoRoot,
    /// XML that stops in the middle.
    #[error("XML ends before its root element is closed")]
    XmlEndsEarly,
    /// XML that is not well-formed.
    #[error("malformed XML at byte {byte}: {reason}")]
    Malformed {
        /// The place in the source, counted after decompression and in UTF-8.
        byte: u64,
        /// What is wrong there.
        reason: String,
    },
    /// Elements within elements beyond all reason.
    #[error("elements nested deeper than {0}")]
    TooDeep(usize),
    /// The name of an element beyond all reason.
    #[error("a name longer than {0} bytes")]
    LongName(usize),
    /// One tag, comment, CDATA section or document type beyond all reason.
    #[error("markup longer than {0} bytes")]
    LongMarkup(usize),
}

impl From<io::Error> for Fault {
    /// Unwraps the fault that a reader below has put into `error`.
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
    /// The fault behind `error`, which the XML parser found at `byte`.
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
