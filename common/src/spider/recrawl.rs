//! Whether pages that were crawled before are fetched again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// `recrawl` and `--recrawl`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recrawl {
    /// Never: a URL is crawled once.
    #[default]
    Never,
    /// If it may have changed: by the sitemap's `lastmod`, or by asking the server with `If-None-Match` and
    /// `If-Modified-Since`.
    Changed,
    /// Always.
    Always,
    /// If it was fetched longer ago than this.
    Age(Duration),
}

/// A text that names no [`Recrawl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no answer to when a page is fetched again: write `never`, `changed`, `always`, or an age as `12h`"
)]
pub struct UnknownRecrawl(String);

impl Recrawl {
    /// Whether a page is ever fetched again.
    pub fn is_never(self) -> bool {
        self == Self::Never
    }
}

impl FromStr for Recrawl {
    type Err = UnknownRecrawl;
    fn from_str(text: &str) -> Result<Self, UnknownRecrawl> {
        Ok(match text {
            "never" => Self::Never,
            "changed" => Self::Changed,
            "always" => Self::Always,
            age => Self::Age(humantime::parse_duration(age).map_err(|_| UnknownRecrawl(age.to_owned()))?),
        })
    }
}

impl fmt::Display for Recrawl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Changed => f.write_str("changed"),
            Self::Always => f.write_str("always"),
            Self::Age(age) => humantime::format_duration(*age).fmt(f),
        }
    }
}
