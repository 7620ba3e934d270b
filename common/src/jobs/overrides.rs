//! What a job says in place of its spider's file.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::nearest::nearest;
use crate::spider::{Recrawl, SpiderOverrides};
use crate::text::printable;

/// What wins over the file of the spider in one job. Only what its crawl itself carries to all workers can be said here; how
/// hosts are asked and where items go is for the file to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobOverrides {
    /// Whether pages that were crawled before are fetched again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recrawl: Option<Recrawl>,
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
const NAMES: [&str; 3] = ["recrawl", "max_pages", "limit"];

impl JobOverrides {
    /// Sets one by its name, as `max_pages` to `100`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidOverride> {
        let number = |name, error: std::num::ParseIntError| {
            let error = format!("`{}` is not a number that it can have: {error}", printable(value, 40));
            InvalidOverride::Value { name, error }
        };
        match name {
            "recrawl" => {
                let recrawl = value.parse().map_err(|error: crate::spider::UnknownRecrawl| {
                    InvalidOverride::Value { name: "recrawl", error: error.to_string() }
                })?;
                self.recrawl = Some(recrawl);
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
        SpiderOverrides { recrawl: self.recrawl, max_pages: self.max_pages, ..SpiderOverrides::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_are_set_by_name_and_a_wrong_one_is_named() {
        let mut overrides = JobOverrides::default();
        for (name, value) in [("recrawl", "12h"), ("max_pages", "7"), ("limit", "0")] {
            overrides.set(name, value).unwrap();
        }
        let text = serde_json::to_string(&overrides).unwrap();
        assert_eq!(text, r#"{"recrawl":"12h","max_pages":7,"limit":0}"#);
        assert_eq!(serde_json::from_str::<JobOverrides>(&text).unwrap(), overrides);
        for (name, value, said) in [
            ("max_page", "7", "max_pages"),
            ("max_pages", "0", "`0`"),
            ("limit", "-1", "`-1`"),
            ("recrawl", "often", "`often`"),
        ] {
            let error = overrides.set(name, value).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(name), "{error}");
        }
    }
}
