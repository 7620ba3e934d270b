//! An entry of a source, and the reasons why one may be unusable.

use trawl_common::text::printable;

/// A page and its source's hints about it. Only the location is always present.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SitemapEntry {
    /// The location as written, with entities decoded and surrounding whitespace removed. Not yet a URL.
    pub loc: String,
    /// The time of the page's last change, as written: a W3C date. [`changed_by`](super::changed_by) parses
    /// it.
    pub lastmod: Option<String>,
    /// The declared frequency of changes.
    pub changefreq: Option<Changefreq>,
    /// Whether the entry carries the Google News extension.
    pub news: bool,
}

/// The seven values of `<changefreq>` in sitemaps.org 0.9, in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
#[expect(missing_docs, reason = "the words of the standard")]
pub enum Changefreq {
    Always,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
    Never,
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The start of the text found instead of a location, safe to print.
    pub text: String,
    /// The defect.
    pub flaw: Flaw,
}

impl Broken {
    /// Maximum length of a broken location to show, in bytes.
    pub(super) const MAX_SHOWN_BYTES: usize = 200;

    pub(super) fn new(text: &str, flaw: Flaw) -> Self {
        Self { text: printable(text, Self::MAX_SHOWN_BYTES), flaw }
    }
}

/// A defect of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The location is missing or empty.
    #[error("no location")]
    NoLocation,
    /// The entry has a location already; this is another.
    #[error("a second location in one entry")]
    SecondLocation,
    /// The location is longer than [`Limits::max_loc_bytes`](super::Limits::max_loc_bytes).
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// The location has bytes that are not text in the source's encoding.
    #[error("not UTF-8")]
    NotUtf8,
    /// An entity that XML does not predefine. Entities that a document defines are not expanded.
    #[error("unknown entity `&{0};`")]
    UnknownEntity(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_frequency_is_read_in_any_case() {
        assert_eq!("Daily".parse(), Ok(Changefreq::Daily));
        assert_eq!("NEVER".parse(), Ok(Changefreq::Never));
        assert!("fortnightly".parse::<Changefreq>().is_err());
        assert_eq!(<&str>::from(Changefreq::Monthly), "monthly");
    }
}
