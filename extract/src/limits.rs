//! Limits on the result of one page.

/// Maximum length of a text in bytes; a longer one is cut, and that is reported.
pub const MAX_TEXT: usize = 1 << 20;
/// Maximum length in bytes of a page's own texts, such as its title, except for its main text.
pub const MAX_PAGE_TEXT: usize = 64 << 10;
/// Maximum size in bytes of the links that are listed or followed.
pub(crate) const MAX_LINKS: usize = 3 << 19;
