//! What is to be remembered of pages, on its way into their memory.

use std::collections::BTreeMap;

use trawl_common::names::SpiderName;
use trawl_common::ports::{Claim, NewUrl};
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
pub(crate) struct Remarks {
    of_pages: Vec<(Claim, Remark)>,
    links: BTreeMap<SpiderName, Vec<(CanonicalUrl, u16)>>,
}

impl Remarks {
    /// Adds a page, and what it links to: as long as it stays as it is, its links are not read again.
    pub(crate) fn add(&mut self, claim: &Claim, remark: Remark, links: &[NewUrl]) {
        self.of_pages.push((claim.clone(), remark));
        let found = links.iter().map(|link| (link.url.clone(), link.depth));
        self.links.entry(claim.crawl.spider.clone()).or_default().extend(found);
    }

    /// Writes all. What pages link to comes first: who dies in between has remembered too much, and loses nothing.
    pub(crate) async fn write(self, shared: &Shared) {
        let (pages, health) = (&shared.ports.pages, &shared.health);
        for (spider, found) in self.links.iter().filter(|(_, found)| !found.is_empty()) {
            health.until_done("remembering links", || pages.know(spider, found)).await;
        }
        let mut visits: BTreeMap<SpiderName, Vec<(CanonicalUrl, Visited)>> = BTreeMap::new();
        let mut gone: BTreeMap<SpiderName, Vec<CanonicalUrl>> = BTreeMap::new();
        for (Claim { crawl, url }, remark) in self.of_pages {
            match remark {
                Remark::Visited(visited) => visits.entry(crawl.spider).or_default().push((url, visited)),
                Remark::Gone => gone.entry(crawl.spider).or_default().push(url),
            }
        }
        for (spider, visits) in &visits {
            health.until_done("remembering pages", || pages.note(spider, visits)).await;
        }
        for (spider, urls) in &gone {
            health.until_done("forgetting pages", || pages.forget(spider, urls)).await;
        }
    }
}
