//! How much one page may give.

/// Maximum length of a text in bytes; what is longer is cut, and that is said.
pub const MAX_TEXT: usize = 1 << 20;
/// The same for what a page says of itself, such as its title, but for its main text.
pub const MAX_PAGE_TEXT: usize = 64 << 10;
/// The most bytes of the links that are listed, or followed.
pub(crate) const MAX_LINKS: usize = 3 << 19;
