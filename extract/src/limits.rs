//! How much one page may give.

/// The most bytes of a text field; what is longer is cut.
pub const MAX_TEXT: usize = 64 * 1024;
/// The most bytes of the links that are listed, or followed.
pub(crate) const MAX_LINKS: usize = 3 << 19;
