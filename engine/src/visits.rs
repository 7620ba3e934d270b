//! Facts about pages to remember between crawls.

use std::collections::BTreeMap;

use trawl_common::frontier::Key;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Completion, Error, ErrorKind, PageVisit, Result};
use trawl_common::spider::page_history::Visited;
use trawl_common::web::url::CanonicalUrl;

use crate::member::Member;

/// The facts to remember about the pages of a batch, by spider.
#[derive(Default)]
pub(crate) struct Visits<'a> {
    visits: BTreeMap<&'a SpiderName, Vec<(CanonicalUrl, Visited)>>,
    gone: BTreeMap<&'a SpiderName, Vec<CanonicalUrl>>,
    links: BTreeMap<&'a SpiderName, Vec<(CanonicalUrl, u16)>>,
}

impl<'a> Visits<'a> {
    /// Collects the facts to remember from these endings: each page and its links. The links of an unchanged
    /// page are not read again.
    pub(crate) fn new(endings: impl Iterator<Item = &'a Completion>) -> Self {
        let mut all = Self::default();
        for Completion { finish, links, memory, .. } in endings {
            let crawl = &finish.claim.crawl;
            // Only URLs have pages.
            let Key::Url(url) = &finish.claim.key else { continue };
            match memory {
                Some(PageVisit::Visited(visited)) => {
                    all.visits.entry(&crawl.spider).or_default().push((url.clone(), visited.clone()));
                }
                Some(PageVisit::Gone) => all.gone.entry(&crawl.spider).or_default().push(url.clone()),
                None => continue,
            }
            let found = links.iter().filter_map(|link| Some((link.work.url()?.clone(), link.depth)));
            all.links.entry(&crawl.spider).or_default().extend(found);
        }
        all
    }

    /// Writes everything; fails at once if the store is full. Links come first: if the process dies in between, too
    /// much is remembered and nothing is lost.
    pub(crate) async fn write(self, Member { pages, health, .. }: &Member) -> Result<()> {
        let is_away = |error: &Error| error.kind == ErrorKind::Unavailable;
        for (spider, found) in self.links.iter().filter(|(_, found)| !found.is_empty()) {
            health.retry_if("remembering links", is_away, || pages.know(spider, found)).await?;
        }
        for (spider, visits) in &self.visits {
            health.retry_if("remembering pages", is_away, || pages.note(spider, visits)).await?;
        }
        for (spider, urls) in &self.gone {
            health.retry("forgetting pages", || pages.forget(spider, urls)).await?;
        }
        Ok(())
    }
}
