//! The URLs that a crawl takes for seen.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Recrawl;
use crate::as_text::as_text;

/// The URLs that a crawl takes for seen, and whether it visits again pages that earlier crawls of its spider found: the
/// value of `dedup` or `recrawl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DedupScope {
    /// All URLs that any crawl of the spider has admitted.
    Spider,
    /// All URLs that this crawl has admitted.
    Crawl,
    /// All URLs that this crawl has admitted, and pages that were fetched less than this ago.
    Age(Duration),
    /// As for `recrawl`: unless that is `never`, all URLs that this crawl has admitted. If links are followed, pages
    /// that earlier crawls found are visited again.
    Recrawl(Recrawl),
}

impl DedupScope {
    /// Returns the scope that is set, if any; at most one of the two may be.
    pub fn said(dedup: Option<Self>, recrawl: Option<Recrawl>) -> Option<Self> {
        dedup.or(recrawl.map(Self::Recrawl))
    }

    /// Returns when a crawl with this scope fetches again pages that were crawled before.
    pub fn recrawl(self) -> Recrawl {
        match self {
            Self::Spider => Recrawl::Never,
            Self::Crawl => Recrawl::Always,
            Self::Age(age) => Recrawl::Age(age),
            Self::Recrawl(recrawl) => recrawl,
        }
    }

    /// Whether pages that earlier crawls of the spider found are visited again, if the spider follows links.
    pub fn is_revisiting(self) -> bool {
        matches!(self, Self::Recrawl(recrawl) if !recrawl.is_never())
    }
}

impl From<Recrawl> for DedupScope {
    /// Returns the scope of a crawl with these terms.
    fn from(recrawl: Recrawl) -> Self {
        match recrawl {
            Recrawl::Never => Self::Spider,
            Recrawl::Changed | Recrawl::Always => Self::Crawl,
            Recrawl::Age(age) => Self::Age(age),
        }
    }
}

/// The error of a text that is not a [`DedupScope`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no answer to which URLs a crawl takes for seen: write `spider`, `crawl`, or an age as `12h`"
)]
pub struct UnknownDedupScope(String);

impl FromStr for DedupScope {
    type Err = UnknownDedupScope;
    fn from_str(text: &str) -> Result<Self, UnknownDedupScope> {
        Ok(match text {
            "spider" => Self::Spider,
            "crawl" => Self::Crawl,
            age => Self::Age(humantime::parse_duration(age).map_err(|_| UnknownDedupScope(age.to_owned()))?),
        })
    }
}

as_text!(DedupScope);

impl fmt::Display for DedupScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Spider => f.write_str("spider"),
            Self::Crawl => f.write_str("crawl"),
            Self::Age(age) => humantime::format_duration(age).fmt(f),
            Self::Recrawl(recrawl) => Self::from(recrawl).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_reads_as_it_is_written_and_a_wrong_one_says_what_there_is() {
        for text in ["spider", "crawl", "12h"] {
            assert_eq!(text.parse::<DedupScope>().unwrap().to_string(), text);
        }
        let error = "host".parse::<DedupScope>().unwrap_err().to_string();
        assert!(error.contains("`host`") && error.contains("`spider`, `crawl`"), "{error}");
    }

    #[test]
    fn only_a_recrawl_visits_again_what_others_found() {
        let day = Duration::from_secs(86_400);
        for dedup in
            [DedupScope::Spider, DedupScope::Crawl, DedupScope::Age(day), DedupScope::Recrawl(Recrawl::Never)]
        {
            assert!(!dedup.is_revisiting(), "{dedup:?}");
        }
        assert!(DedupScope::Recrawl(Recrawl::Changed).is_revisiting());
        assert!(DedupScope::Spider.recrawl().is_never());
        assert_eq!(DedupScope::from(DedupScope::Age(day).recrawl()), DedupScope::Age(day));
    }
}
