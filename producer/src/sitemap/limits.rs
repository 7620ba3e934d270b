//! How much a source may ask for.

/// What a source that asks for more is taken for an attack by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes, as sent and after decompression.
    pub max_bytes: u64,
    /// Things found, of any kind.
    pub max_entries: u64,
    /// Bytes of one location; a longer one is broken and costs no memory.
    pub max_loc_bytes: usize,
}

impl Default for Limits {
    /// Well above the 50,000 URLs and 50 MiB of sitemaps.org, which real sites exceed.
    fn default() -> Self {
        Self { max_bytes: 1 << 30, max_entries: 10_000_000, max_loc_bytes: 16 * 1024 }
    }
}
