//! What a page links to, on its way into the frontier.

use moka::sync::Cache;
use trawl_common::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claim, Linking, NewUrl, Ports, Taken};
use trawl_common::route::{self, Hints};
use trawl_common::time::UnixMs;
use trawl_common::url::{CanonicalUrl, Fingerprint};

use crate::Shared;
use crate::job::{Job, key};

/// So many links are remembered as known.
const REMEMBERED: u64 = 200_000;

/// The links that the frontier is known to have seen: pages of one site link to the same others again and again.
pub(crate) struct Known(Cache<Fingerprint, ()>);

impl Default for Known {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Known {
    fn has(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> bool {
        self.0.contains_key(&key(crawl, url))
    }

    fn add(&self, crawl: &CrawlRef, url: &CanonicalUrl) {
        self.0.insert(key(crawl, url), ());
    }
}

/// The links of a page that are within its spider's scope and not known yet, each with its lane and its deadline. `landed` is
/// where redirects led to it: its start may be elsewhere than people wrote, and what links to itself is read already.
pub(crate) fn to_follow(
    shared: &Shared,
    job: &Job,
    landed: Option<&CanonicalUrl>,
    links: Vec<CanonicalUrl>,
) -> Vec<NewUrl> {
    let Job { message: Message { url: page, crawl, depth, .. }, spider, .. } = job;
    let home = landed.filter(|_| *depth == 0).unwrap_or(page);
    let below = depth.saturating_add(1);
    let followed = links.into_iter().filter(|link| {
        spider.scope.follows(home, link, below)
            && link != page
            && Some(link) != landed
            && !shared.known.has(crawl, link)
    });
    let now = UnixMs::now();
    let new = |url: CanonicalUrl| {
        let routed = route::route(&spider.route, &url, Hints::default());
        let deadline = routed.ttl.map(|ttl| now.plus(ttl));
        NewUrl { url, lane: routed.lane, deadline, depth: below, referrer: Some(page.clone()) }
    };
    followed.map(new).collect()
}

/// 1. Admits what pages link to.
/// 2. Publishes what is new of it.
/// 3. Confirms that.
///
/// Returns for each page, in order, the links that the frontier has; `None` for one that this worker no longer holds: its
/// links were not admitted, so it is not to be finished.
pub(crate) async fn admit(shared: &Shared, pages: Vec<Linking>) -> Vec<Option<Vec<NewUrl>>> {
    let Shared { ports: Ports { frontier, queue, .. }, health, .. } = shared;
    let admitting = || frontier.admit_links(&shared.id, &pages);
    let admitted = health.until_done("admitting links", admitting).await;
    let mut messages = Vec::new();
    let mut all = Vec::with_capacity(pages.len());
    for (Linking { page: Claim { crawl, .. }, links }, admitted) in pages.into_iter().zip(admitted) {
        let Some(admitted) = admitted else {
            all.push(None);
            continue;
        };
        let mut taken = Vec::with_capacity(links.len());
        for (link, what) in links.into_iter().zip(admitted).filter(|(_, what)| *what != Taken::LeftOut) {
            if what == Taken::New {
                messages.push(link.message(&crawl));
            }
            taken.push((crawl.clone(), link));
        }
        all.push(Some(taken));
    }
    if !messages.is_empty() {
        health.until_done("publishing links", || queue.publish(&messages)).await;
        for (crawl, urls) in crate::settle::urls_by_crawl(messages.into_iter()) {
            health.until_done("confirming links", || frontier.confirm(&crawl, &urls)).await;
        }
    }
    let known = |(crawl, link): (CrawlRef, NewUrl)| {
        shared.known.add(&crawl, &link.url);
        link
    };
    all.into_iter().map(|taken| Some(taken?.into_iter().map(known).collect())).collect()
}
