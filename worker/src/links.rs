//! Which links of a page are followed.

use trawl_common::frontier::limit::{LeftOut, Limit};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::route::{self, Hints};
use trawl_common::ports::NewUrl;
use trawl_common::spider::LinkVerdict;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::Link;

use crate::job::Job;
use crate::shared::Shared;

/// The links of a page that are within its spider's scope and not known yet, each with its lane and its deadline, and what
/// limits left out of them. `landed` is where redirects led to it: its start may be elsewhere than people wrote, and what
/// links to itself is read already.
pub(crate) fn to_follow(
    shared: &Shared,
    job: &Job,
    landed: Option<&CanonicalUrl>,
    links: Vec<Link>,
) -> (Vec<NewUrl>, LeftOut) {
    let Job { url: page, message: Message { crawl, depth, .. }, spider, .. } = job;
    let home = landed.filter(|_| *depth == 0).unwrap_or(page);
    let now = UnixMs::now();
    let new = |url: CanonicalUrl, depth| {
        let routed = route::route(&spider.route, &url, Hints::default());
        let deadline = routed.ttl.map(|ttl| now.plus(ttl));
        NewUrl { deadline, depth, referrer: Some(page.clone().into()), ..NewUrl::seed(url, routed.lane) }
    };
    let (mut followed, mut left_out) = (Vec::new(), LeftOut::default());
    for Link { url, is_next } in links {
        if url == *page || Some(&url) == landed || shared.known_links.has(crawl, &url) {
            continue;
        }
        let depth = if is_next { *depth } else { depth.saturating_add(1) };
        match spider.scope.verdict(home, &url, depth) {
            LinkVerdict::Follow if !spider.spider.urls.takes(&url) => left_out.add(Limit::UrlLength, 1),
            LinkVerdict::Follow => followed.push(new(url, depth)),
            LinkVerdict::Elsewhere | LinkVerdict::Unwanted => {}
            LinkVerdict::Beyond(limit) => left_out.add(limit, 1),
        }
    }
    (followed, left_out)
}
