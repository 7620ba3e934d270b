//! Totals of one source.

use super::found::Format;

/// The amount read, and the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// The format of the source, or `None` if it is empty or unknown.
    pub format: Option<Format>,
    /// Pages found.
    pub urls: u64,
    /// Further sitemaps found.
    pub sitemaps: u64,
    /// Unusable entries found.
    pub broken: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
}

impl Summary {
    /// Returns the number of entries found, of any kind.
    pub fn entries(&self) -> u64 {
        self.urls + self.sitemaps + self.broken
    }
}
