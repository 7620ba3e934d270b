//! What is to be remembered of pages between crawls, on its way into their memory.

use std::collections::BTreeMap;

use trawl_common::frontier::Key;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Ending, Memory, Result};
use trawl_common::spider::page_history::Visited;
use trawl_common::web::url::CanonicalUrl;

use crate::member::Member;

/// What is to be remembered of the pages of a batch, by spider.
#[derive(Default)]
pub(crate) struct Memories<'a> {
    visits: BTreeMap<&'a SpiderName, Vec<(CanonicalUrl, Visited)>>,
    gone: BTreeMap<&'a SpiderName, Vec<CanonicalUrl>>,
    links: BTreeMap<&'a SpiderName, Vec<(CanonicalUrl, u16)>>,
}

impl<'a> Memories<'a> {
    /// What these endings leave behind: of each page, and of what it links to. As long as a page stays as it is, its links are not
    /// read again.
    pub(crate) fn of(endings: impl Iterator<Item = &'a Ending>) -> Self {
        let mut all = Self::default();
        for Ending { finish, links, memory, .. } in endings {
            let crawl = &finish.claim.crawl;
            // There are no pages but those of URLs.
            let Key::Url(url) = &finish.claim.key else { continue };
            match memory {
                Some(Memory::Visited(visited)) => {
                    all.visits.entry(&crawl.spider).or_default().push((url.clone(), visited.clone()));
                }
                Some(Memory::Gone) => all.gone.entry(&crawl.spider).or_default().push(url.clone()),
                None => continue,
            }
            let found = links.iter().filter_map(|link| Some((link.work.url()?.clone(), link.depth)));
            all.links.entry(&crawl.spider).or_default().extend(found);
        }
        all
    }

    /// Writes all; fails if the store is full. What pages link to comes first: who dies in between has remembered too much, and
    /// loses nothing.
    pub(crate) async fn write(self, Member { pages, health, .. }: &Member) -> Result<()> {
        for (spider, found) in self.links.iter().filter(|(_, found)| !found.is_empty()) {
            health.unless_full("remembering links", || pages.know(spider, found)).await?;
        }
        for (spider, visits) in &self.visits {
            health.unless_full("remembering pages", || pages.note(spider, visits)).await?;
        }
        for (spider, urls) in &self.gone {
            health.until_done("forgetting pages", || pages.forget(spider, urls)).await;
        }
        Ok(())
    }
}
