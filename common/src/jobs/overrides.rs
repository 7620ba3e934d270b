//! What a job says in place of its spider's file.

use std::fmt::Display;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::nearest::nearest;
use crate::spider::{DedupScope, Recrawl, SpiderOverrides, UnknownDedupScope, UnknownRecrawl};
use crate::text::printable;

/// What wins over the file of the spider in one job. Only what its crawl itself carries to all workers can be said here; how
/// hosts are asked and where items go is for the file to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobOverrides {
    /// Whether pages that were crawled before are fetched again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recrawl: Option<Recrawl>,
    /// Which URLs its crawl takes for seen; it wins over `recrawl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup: Option<DedupScope>,
    /// After how many pages done the crawl ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<NonZeroU64>,
    /// How many URLs are taken from its sources, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A name that is no override, or a value that its override cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOverride {
    /// There is no such name.
    #[error("`{name}` cannot be set for a job{hint}: {NAMES:?} can")]
    Name {
        /// The name.
        name: String,
        /// A name that is nearly the same.
        hint: String,
    },
    /// Its value is not one of its kind.
    #[error("{name}: {error}")]
    Value {
        /// The override.
        name: &'static str,
        /// What is wrong with its value.
        error: String,
    },
}

/// What can be set.
const NAMES: [&str; 4] = ["dedup", "recrawl", "max_pages", "limit"];

impl JobOverrides {
    /// Sets one by its name, as `max_pages` to `100`.
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

    /// The part of them that a spider knows.
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
