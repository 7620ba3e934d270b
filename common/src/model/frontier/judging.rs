//! How the result of a crawl is judged.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `[expect]`: what a crawl of the spider yields if all is well, which is looked at when it has finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expect {
    /// How many pages and tasks are done, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<NonZeroU64>,
    /// How many items it gives, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<NonZeroU64>,
    /// Which share of its items has a value in a field, at least: from 0 to 1.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, f64>,
}

/// `[quality]`: what the last pages of a crawl of the spider yield if all is well, which is looked at while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Number of pages, done or failed, that are judged together.
    pub window: u64,
    /// The least share of the pages where a required field was looked for that have it: from 0 to 1, as all shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<f64>,
    /// The least number of items that a page gives on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_per_page: Option<f64>,
    /// The greatest share of pages that have failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<f64>,
    /// The greatest share of items that are duplicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<f64>,
}

/// How the result of a crawl is judged, which is kept with the crawl. As text a JSON object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Judging {
    /// The least that it is expected to yield.
    pub expect: Expect,
    /// The least that its last pages are to yield while it runs; `None` if it is not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// Whether someone has chosen which URLs it takes for seen. Then it is in order that it finds nothing new.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_dedup_chosen: bool,
}

impl Judging {
    /// Returns the same for a crawl that replays a part of another: shares of items still count, numbers do not, and it
    /// is not looked at while it runs, as its pages have failed before.
    pub fn of_replay(self) -> Self {
        let expect = Expect { fields: self.expect.fields, ..Expect::default() };
        Self { expect, quality: None, ..self }
    }
}

impl FromStr for Judging {
    type Err = serde_json::Error;
    fn from_str(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl fmt::Display for Judging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_crawl_is_judged_reads_as_it_is_written_and_a_replay_owes_no_numbers() {
        let expect =
            Expect { done: NonZeroU64::new(5), items: None, fields: [("price".to_owned(), 0.5)].into() };
        let judging = Judging { expect, ..Judging::default() };
        assert_eq!(judging.to_string(), r#"{"expect":{"done":5,"fields":{"price":0.5}}}"#);
        assert_eq!(judging.to_string().parse::<Judging>().unwrap(), judging);
        assert_eq!(judging.of_replay().to_string(), r#"{"expect":{"fields":{"price":0.5}}}"#);
        let quality =
            Quality { window: 50, required: Some(0.9), items_per_page: None, failed: None, duplicates: None };
        let watched = Judging { quality: Some(quality), ..Judging::default() };
        assert_eq!(watched.to_string().parse::<Judging>().unwrap(), watched);
        assert_eq!(watched.of_replay(), Judging::default());
        assert_eq!("{}".parse::<Judging>().unwrap(), Judging::default());
    }
}
