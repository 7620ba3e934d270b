//! What a source says of one page, and why an entry may be unusable.

use std::str::FromStr;

use trawl_common::text::printable;

/// A page and what its source says of it. Only the location is sure to be there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// The location as written, without white space around it, entities decoded. Not yet a URL.
    pub loc: String,
    /// When the page last changed, as written: a W3C date. [`changed_by`](super::changed_by) reads it.
    pub lastmod: Option<String>,
    /// The page's weight within its site, from 0 to 1; anything else is taken for none.
    pub priority: Option<f32>,
    /// How often the page is said to change.
    pub changefreq: Option<Changefreq>,
    /// Whether the entry carries the Google News extension.
    pub news: bool,
}

/// The seven values of `<changefreq>` in sitemaps.org 0.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Changefreq {
    /// The word in a sitemap.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Hourly => "hourly",
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Yearly => "yearly",
            Self::Never => "never",
        }
    }
}

impl FromStr for Changefreq {
    type Err = ();

    /// In any case of letters.
    fn from_str(word: &str) -> Result<Self, ()> {
        Ok(match word.to_ascii_lowercase().as_str() {
            "always" => Self::Always,
            "hourly" => Self::Hourly,
            "daily" => Self::Daily,
            "weekly" => Self::Weekly,
            "monthly" => Self::Monthly,
            "yearly" => Self::Yearly,
            "never" => Self::Never,
            _ => return Err(()),
        })
    }
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The start of what stands where the location should be, safe to print.
    pub text: String,
    /// What is wrong with it.
    pub flaw: Flaw,
}

impl Broken {
    /// As much of a broken location as is worth showing, in bytes.
    pub(super) const SHOWN: usize = 200;

    pub(super) fn new(text: &str, flaw: Flaw) -> Self {
        Self { text: printable(text, Self::SHOWN), flaw }
    }
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It has no location, or an empty one.
    #[error("no location")]
    NoLocation,
    /// It has a location already; this is one more.
    #[error("a second location in one entry")]
    SecondLocation,
    /// The location is longer than [`Limits::max_loc_bytes`](super::Limits::max_loc_bytes).
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// The location has bytes that are no text in the source's encoding.
    #[error("not UTF-8")]
    NotUtf8,
    /// An entity that XML does not predefine. Those that a document defines are not expanded.
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
        assert_eq!("fortnightly".parse::<Changefreq>(), Err(()));
    }
}
