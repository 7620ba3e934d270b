//! What is to be remembered of pages, on its way into their memory.

use std::collections::BTreeMap;

use trawl_common::names::SpiderName;
use trawl_common::ports::{Claim, NewUrl, Result};
use trawl_common::url::CanonicalUrl;
use trawl_common::visited::Visited;

use crate::Shared;

/// What is to be remembered of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// That it was visited.
    Visited(Visited),
    /// Nothing: it is no more.
    Gone,
}

/// What is to be remembered of the pages of a batch.
#[derive(Default)]
pub(crate) struct Remarks<'a> {
    of_pages: Vec<(&'a Claim, &'a Remark)>,
    links: BTreeMap<&'a SpiderName, Vec<(CanonicalUrl, u16)>>,
}

impl<'a> Remarks<'a> {
    /// Adds a page, and what it links to: as long as it stays as it is, its links are not read again.
    pub(crate) fn add(&mut self, claim: &'a Claim, remark: &'a Remark, links: &[NewUrl]) {
        self.of_pages.push((claim, remark));
        let found = links.iter().map(|link| (link.url.clone(), link.depth));
        self.links.entry(&claim.crawl.spider).or_default().extend(found);
    }

    /// Writes all, unless the store is full. What pages link to comes first: who dies in between has remembered too much, and
    /// loses nothing.
    pub(crate) async fn write(self, shared: &Shared) -> Result<()> {
        let (pages, health) = (&shared.ports.pages, &shared.health);
        for (spider, found) in self.links.iter().filter(|(_, found)| !found.is_empty()) {
            health.unless_full("remembering links", || pages.know(spider, found)).await?;
        }
        let mut visits: BTreeMap<&SpiderName, Vec<(CanonicalUrl, Visited)>> = BTreeMap::new();
        let mut gone: BTreeMap<&SpiderName, Vec<CanonicalUrl>> = BTreeMap::new();
        for (Claim { crawl, url }, remark) in self.of_pages {
            match remark {
                Remark::Visited(visited) => {
                    visits.entry(&crawl.spider).or_default().push((url.clone(), visited.clone()));
                }
                Remark::Gone => gone.entry(&crawl.spider).or_default().push(url.clone()),
            }
        }
        for (spider, visits) in &visits {
            health.unless_full("remembering pages", || pages.note(spider, visits)).await?;
        }
        for (spider, urls) in &gone {
            health.until_done("forgetting pages", || pages.forget(spider, urls)).await;
        }
        Ok(())
    }
}
