//! The reasons why a source is not read.

use std::io;

use trawl_common::frontier::outcome::Failure;
use trawl_common::ports;
use trawl_common::web::host::HostKey;

use crate::sitemap::{Fault, SitemapError};

/// The reason why a source could not be read to its end. Entries found before are kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("cannot be opened: {0}")]
    Open(io::Error),
    #[error("cannot be read: {0}")]
    Read(io::Error),
    #[error("cannot be fetched: {0}")]
    Fetch(Failure),
    #[error("not asked for: {0} is blocked, until `trawl hosts unblock {0}`")]
    Blocked(HostKey),
    #[error(transparent)]
    Content(SitemapError),
    #[error("is a web page, not a list of pages: crawl it by its URL")]
    Page,
    #[error("its reader panicked")]
    Panic,
    #[error("not asked for: the run has ended")]
    Stopped,
    #[error("not asked for: {0}")]
    Port(ports::Error),
}

impl ReadError {
    /// Whether the source is a web page rather than a list of them.
    pub(crate) fn is_page(&self) -> bool {
        match self {
            Self::Content(error) => match &error.fault {
                Fault::UnknownRoot(root) => root.eq_ignore_ascii_case("html"),
                _ => false,
            },
            Self::Page => true,
            _ => false,
        }
    }
}
