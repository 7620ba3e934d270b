//! What was read of a source.

use super::found::Format;

/// How much was read, and of what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// What the source is, unless it is empty or nothing that is known.
    pub format: Option<Format>,
    /// Pages found.
    pub urls: u64,
    /// Further sitemaps found.
    pub sitemaps: u64,
    /// Entries that cannot be used.
    pub broken: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
}

impl Summary {
    /// Things found, of any kind.
    pub fn entries(&self) -> u64 {
        self.urls + self.sitemaps + self.broken
    }
}
