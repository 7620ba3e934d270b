//! What a command line overrides in a spider's file.

use std::num::NonZeroU64;

use super::{DedupScope, Follow, Spider};
use crate::politeness::rate::Rate;
use crate::settings::SinkSettings;

/// Flags that win over what a spider's file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpiderOverrides {
    /// How often one host is asked.
    pub rate: Option<Rate>,
    /// Whether links are followed also where the file says nothing of that.
    pub follow: bool,
    /// After how many pages done the crawl ends.
    pub max_pages: Option<NonZeroU64>,
    /// Which URLs the crawl takes for seen.
    pub dedup: Option<DedupScope>,
    /// Where items go.
    pub sinks: Option<Vec<SinkSettings>>,
}

impl SpiderOverrides {
    /// The spider with these flags.
    pub fn apply(&self, spider: Spider) -> Spider {
        let mut spider = spider;
        spider.politeness.rate = self.rate.or(spider.politeness.rate);
        spider.max_pages = self.max_pages.or(spider.max_pages);
        spider.dedup = self.dedup.or(spider.dedup);
        spider.sinks = self.sinks.clone().or(spider.sinks);
        if self.follow {
            spider.follow.get_or_insert_with(Follow::default);
        }
        spider
    }
}
