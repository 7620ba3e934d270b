//! What a page links to, on its way into the frontier.

use moka::sync::Cache;
use trawl_common::limit::{LeftOut, Limit};
use trawl_common::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claim, Linked, Linking, NewUrl, Ports, Taken};
use trawl_common::route::{self, Hints};
use trawl_common::spider::Verdict;
use trawl_common::time::UnixMs;
use trawl_common::url::{CanonicalUrl, Fingerprint};
use trawl_extract::Link;

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

/// The links of a page that are within its spider's scope and not known yet, each with its lane and its deadline, and what
/// limits left out of them. `landed` is where redirects led to it: its start may be elsewhere than people wrote, and what
/// links to itself is read already.
pub(crate) fn to_follow(
    shared: &Shared,
    job: &Job,
    landed: Option<&CanonicalUrl>,
    links: Vec<Link>,
) -> (Vec<NewUrl>, LeftOut) {
    let Job { message: Message { url: page, crawl, depth, .. }, spider, .. } = job;
    let home = landed.filter(|_| *depth == 0).unwrap_or(page);
    let now = UnixMs::now();
    let new = |url: CanonicalUrl, depth| {
        let routed = route::route(&spider.route, &url, Hints::default());
        let deadline = routed.ttl.map(|ttl| now.plus(ttl));
        NewUrl { url, lane: routed.lane, deadline, depth, referrer: Some(page.clone()) }
    };
    let (mut followed, mut left_out) = (Vec::new(), LeftOut::default());
    for Link { url, is_next } in links {
        if url == *page || Some(&url) == landed || shared.known.has(crawl, &url) {
            continue;
        }
        let depth = if is_next { *depth } else { depth.saturating_add(1) };
        match spider.scope.verdict(home, &url, depth) {
            Verdict::Follow if !spider.spider.urls.takes(&url) => left_out.add(Limit::UrlLength, 1),
            Verdict::Follow => followed.push(new(url, depth)),
            Verdict::Leave => {}
            Verdict::Beyond(limit) => left_out.add(limit, 1),
        }
    }
    (followed, left_out)
}

/// What the frontier has of a page's links.
pub(crate) struct Admitted {
    /// Those that it has, in order.
    pub(crate) links: Vec<NewUrl>,
    /// How many it left out.
    pub(crate) left_out: LeftOut,
}

/// 1. Admits what pages link to.
/// 2. Publishes what is new of it.
/// 3. Confirms that.
///
/// Returns for each page, in order, what became of its links.
pub(crate) async fn admit(shared: &Shared, pages: Vec<Linking>) -> Vec<Linked<Admitted>> {
    let Shared { ports: Ports { frontier, queue, .. }, health, .. } = shared;
    let admitting = || frontier.admit_links(&shared.id, &pages);
    let admitted = health.until_done("admitting links", admitting).await;
    let mut messages = Vec::new();
    let mut all = Vec::with_capacity(pages.len());
    for (Linking { page: Claim { crawl, .. }, links }, linked) in pages.into_iter().zip(admitted) {
        let linked = linked.map(|each| {
            let mut admitted =
                Admitted { links: Vec::with_capacity(links.len()), left_out: LeftOut::default() };
            for (link, what) in links.into_iter().zip(each) {
                match what {
                    Taken::New => messages.push(link.message(&crawl)),
                    Taken::Seen => {}
                    Taken::LeftOut => {
                        admitted.left_out.add(Limit::MaxPerHost, 1);
                        continue;
                    }
                }
                admitted.links.push(link);
            }
            admitted
        });
        all.push((crawl, linked));
    }
    if !messages.is_empty() {
        health.until_done("publishing links", || queue.publish(&messages)).await;
        for (crawl, urls) in crate::settle::urls_by_crawl(messages.into_iter()) {
            health.until_done("confirming links", || frontier.confirm(&crawl, &urls)).await;
        }
    }
    // Not before they are confirmed: what is known is not admitted again.
    let known = |(crawl, linked)| {
        if let Linked::Taken(Admitted { links, .. }) = &linked {
            links.iter().for_each(|link| shared.known.add(&crawl, &link.url));
        }
        linked
    };
    all.into_iter().map(known).collect()
}
