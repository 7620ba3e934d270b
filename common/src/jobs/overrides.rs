//! Settings of a job that override its spider's file.

use std::fmt::Display;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::frontier::{DedupScope, Recrawl, UnknownDedupScope, UnknownRecrawl};
use crate::nearest::nearest;
use crate::spider::SpiderOverrides;
use crate::text::printable;

/// Settings that override the spider's file in one job. Only settings that the crawl itself carries to all workers can
/// be overridden; how hosts are requested and where items go is determined by the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobOverrides {
    /// Whether pages that were crawled before are fetched again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recrawl: Option<Recrawl>,
    /// The URLs that count as seen; overrides `recrawl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup: Option<DedupScope>,
    /// The number of pages done after which the crawl ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<NonZeroU64>,
    /// Maximum number of URLs taken from its sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// An unknown override, or a value that is invalid for its override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOverride {
    /// The name is unknown.
    #[error("`{name}` cannot be set for a job{hint}: {NAMES:?} can")]
    Name {
        /// The name.
        name: String,
        /// A similar name that exists.
        hint: String,
    },
    /// The value is invalid.
    #[error("{name}: {error}")]
    Value {
        /// The override.
        name: &'static str,
        /// The reason why the value is invalid.
        error: String,
    },
}

/// The names of all overrides.
const NAMES: [&str; 4] = ["dedup", "recrawl", "max_pages", "limit"];

impl JobOverrides {
    /// Sets an override by its name, as `max_pages` to `100`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidOverride> {
        let number = |name, error: std::num::ParseIntError| {
            let error = format!("`{}` is not a number that it can have: {error}", printable(value, 40));
            InvalidOverride::Value { name, error }
        };
        let wrong = |name, error: &dyn Display| InvalidOverride::Value { name, error: error.to_string() };
        match name {
            "dedup" => {
                self.dedup = Some(value.parse().map_err(|error: UnknownDedupScope| wrong("dedup", &error))?);
            }
            "recrawl" => {
                self.recrawl = Some(value.parse().map_err(|error: UnknownRecrawl| wrong("recrawl", &error))?);
            }
            "max_pages" => {
                self.max_pages = Some(value.parse().map_err(|error| number("max_pages", error))?);
            }
            "limit" => self.limit = Some(value.parse().map_err(|error| number("limit", error))?),
            other => {
                let hint = nearest(other, NAMES.into_iter());
                return Err(InvalidOverride::Name { name: printable(other, 64), hint });
            }
        }
        Ok(())
    }

    /// Returns the overrides that apply to the spider.
    pub fn of_spider(&self) -> SpiderOverrides {
        let dedup = DedupScope::said(self.dedup, self.recrawl);
        SpiderOverrides { dedup, max_pages: self.max_pages, ..SpiderOverrides::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_are_set_by_name_and_a_wrong_one_is_named() {
        let mut overrides = JobOverrides::default();
        for (name, value) in [("recrawl", "12h"), ("dedup", "crawl"), ("max_pages", "7"), ("limit", "0")] {
            overrides.set(name, value).unwrap();
        }
        let text = serde_json::to_string(&overrides).unwrap();
        assert_eq!(text, r#"{"recrawl":"12h","dedup":"crawl","max_pages":7,"limit":0}"#);
        assert_eq!(serde_json::from_str::<JobOverrides>(&text).unwrap(), overrides);
        for (name, value, said) in [
            ("max_page", "7", "max_pages"),
            ("max_pages", "0", "`0`"),
            ("limit", "-1", "`-1`"),
            ("recrawl", "often", "`often`"),
            ("dedup", "host", "`host`"),
        ] {
            let error = overrides.set(name, value).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(name), "{error}");
        }
    }
}
