//! `[browser]`: the browsers that render pages.

use std::path::PathBuf;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::bytes::exact_bytes;

/// `[browser]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Browser {
    /// The program of Chromium; `None` for the one that Debian's packages install.
    pub program: Option<PathBuf>,
    /// Number of browsers of one worker; 0 for a worker that renders no pages.
    pub max: u16,
    /// Number of pages that one browser renders at once.
    pub contexts: u16,
    /// Maximum memory of one browser with all its processes. Memory that they share counts for each.
    #[serde(serialize_with = "exact_bytes")]
    pub memory: ByteSize,
    /// Number of scripts and style sheets of a page that follow one request to their host without a slot of their own.
    pub parts: u16,
    /// Whether Chromium confines the processes that run scripts. It cannot as root.
    pub sandbox: bool,
}

impl Default for Browser {
    fn default() -> Self {
        Self { program: None, max: 1, contexts: 4, memory: ByteSize::gb(4), parts: 16, sandbox: true }
    }
}
