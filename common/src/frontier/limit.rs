//! What keeps links out of a crawl that its spider would follow.

use std::collections::BTreeMap;

/// A limit of a crawl. What it leaves out is counted, as nobody would miss it else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Limit {
    /// `follow.depth`
    Depth,
    /// `follow.max_repeats`
    MaxRepeats,
    /// `follow.max_per_host`
    MaxPerHost,
    /// As many links as are followed of one page.
    PageLinks,
    /// `urls.max_length`
    UrlLength,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 5] =
        [Self::Depth, Self::MaxRepeats, Self::MaxPerHost, Self::PageLinks, Self::UrlLength];

    /// The name in stats.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How many links of a page each limit left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<Limit, u64>);

impl LeftOut {
    /// Counts so many more.
    pub fn add(&mut self, limit: Limit, links: u64) {
        if links > 0 {
            *self.0.entry(limit).or_default() += links;
        }
    }

    /// The limits that left out any, each with how many.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> {
        self.0.iter().map(|(limit, links)| (*limit, *links))
    }

    /// How many all of them left out.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}
