//! Limits that keep links out of a crawl although its spider would follow them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A limit of a crawl. The links that it leaves out are counted, because nobody would notice otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Limit {
    /// `follow.depth`
    Depth,
    /// `follow.max_repeats`
    MaxRepeats,
    /// `follow.max_per_host`
    MaxPerHost,
    /// Maximum number of links followed from one page.
    PageLinks,
    /// `urls.max_length`
    UrlLength,
    /// `paginate.most`
    ListPages,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 6] =
        [Self::Depth, Self::MaxRepeats, Self::MaxPerHost, Self::PageLinks, Self::UrlLength, Self::ListPages];

    /// Returns the name in stats.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The number of links of a page that each limit left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeftOut(BTreeMap<Limit, u64>);

impl LeftOut {
    /// Adds `links` to the count of a limit.
    pub fn add(&mut self, limit: Limit, links: u64) {
        if links > 0 {
            *self.0.entry(limit).or_default() += links;
        }
    }

    /// Iterates over the limits that left out any links, each with the number.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> {
        self.0.iter().map(|(limit, links)| (*limit, *links))
    }

    /// Returns the number of links left out by all limits.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}
