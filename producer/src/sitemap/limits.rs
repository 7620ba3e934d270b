//! Limits on the size of a source.

/// Limits beyond which a source is taken for an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes, both as sent and after decompression.
    pub max_bytes: u64,
    /// Maximum number of entries, of any kind.
    pub max_entries: u64,
    /// Maximum length of one location, in bytes; a longer one is broken and costs no memory.
    pub max_loc_bytes: usize,
}

impl Default for Limits {
    /// Returns limits well above the 50,000 URLs and 50 MiB of sitemaps.org, which real sites exceed.
    fn default() -> Self {
        Self { max_bytes: 1 << 30, max_entries: 10_000_000, max_loc_bytes: 16 * 1024 }
    }
}
