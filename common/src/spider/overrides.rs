//! Command-line overrides of a spider's file.

use std::num::NonZeroU64;

use super::{Follow, Render, Spider};
use crate::frontier::DedupScope;
use crate::politeness::rate::Rate;
use crate::settings::SinkSettings;

/// Flags that override a spider's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpiderOverrides {
    /// The request rate per host.
    pub rate: Option<Rate>,
    /// Whether links are followed even if the file does not mention them.
    pub follow: bool,
    /// The number of pages done after which the crawl ends.
    pub max_pages: Option<NonZeroU64>,
    /// The URLs that count as seen.
    pub dedup: Option<DedupScope>,
    /// Whether pages are rendered.
    pub render: Option<Render>,
    /// The destinations of items.
    pub sinks: Option<Vec<SinkSettings>>,
}

impl SpiderOverrides {
    /// Returns the spider with these flags applied.
    pub fn apply(&self, spider: Spider) -> Spider {
        let mut spider = spider;
        spider.politeness.rate = self.rate.or(spider.politeness.rate);
        spider.max_pages = self.max_pages.or(spider.max_pages);
        spider.dedup = self.dedup.or(spider.dedup);
        spider.sinks = self.sinks.clone().or(spider.sinks);
        if let Some(render) = self.render {
            spider.render = render;
            spider.pages.iter_mut().for_each(|kind| kind.render = None);
        }
        if self.follow {
            spider.follow.get_or_insert_with(Follow::default);
        }
        spider
    }
}
