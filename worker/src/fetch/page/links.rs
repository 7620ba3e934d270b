//! Which links of a page are followed.

use trawl_common::frontier::limit::{LeftOut, Limit};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{Request, Work};
use trawl_common::ports::NewWork;
use trawl_common::spider::LinkVerdict;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Link, LinkKind};

use crate::claimed::ClaimedUrl;
use crate::claimed::new_work::routed;
use crate::fetch::Fetching;
use crate::programs::say_refused;

/// The links of a page that are within its spider's scope, may be asked for and are not known yet, and what its program
/// asks for besides, each with its lane and its deadline, and what limits left out of them. `landed` is where redirects
/// led to it: its start may be elsewhere than people wrote, and what links to itself is read already.
pub(super) fn to_follow(
    fetching: &Fetching,
    claimed: &ClaimedUrl,
    landed: Option<&CanonicalUrl>,
    links: Vec<Link>,
    requests: Vec<Request>,
) -> (Vec<NewWork>, LeftOut) {
    let ClaimedUrl { url: page, message: Message { crawl, depth, .. }, spider, .. } = claimed;
    let home = landed.filter(|_| *depth == 0).unwrap_or(page);
    let (mut followed, mut left_out, mut left_out_keys) = (Vec::new(), LeftOut::default(), 0);
    let mut take = |work: Work, url: &CanonicalUrl, written: Option<CanonicalUrl>, kind: LinkKind| {
        let depth = if kind == LinkKind::Next { *depth } else { depth.saturating_add(1) };
        let verdict = match kind {
            LinkKind::File => LinkVerdict::Follow,
            LinkKind::Next | LinkKind::Page => spider.scope.verdict(home, url, depth),
        };
        match verdict {
            LinkVerdict::Elsewhere | LinkVerdict::Unwanted => {}
            // Parses the URL, so it is asked only about links within the scope.
            _ if matches!(work, Work::Url(_)) && !spider.fetcher.may_ask(url) => {}
            LinkVerdict::Follow if !spider.spider.urls.takes(url) => left_out.add(Limit::UrlLength, 1),
            LinkVerdict::Follow => {
                followed.push(NewWork { written, depth, ..routed(&claimed.message, spider, work, url) });
                return true;
            }
            LinkVerdict::Beyond(limit) => left_out.add(limit, 1),
        }
        false
    };
    for Link { url, written, kind, request } in links {
        let Some(request) = request else {
            let is_itself = claimed.message.work == url || Some(&url) == landed;
            if !is_itself && !fetching.known_links.has(crawl, url.as_str()) {
                take(Work::Url(url.clone()), &url, written, kind);
            }
            continue;
        };
        match Request::new(url, *request) {
            Ok(request) if fetching.known_links.has(crawl, request.key.as_str()) => {}
            Ok(request) if claimed.message.work.request().is_some_and(|own| own.key == request.key) => {}
            Ok(request) if !spider.fetcher.may_ask(&request.url) => {}
            Ok(request) => {
                let url = request.url.clone();
                take(request.into(), &url, written, kind);
            }
            // The URL is too long for the key of a request.
            Err(_) => left_out_keys += 1,
        }
    }
    let mut refused = Vec::new();
    for request in requests {
        let url = request.url.clone();
        if !take(request.into(), &url, None, LinkKind::Page) {
            refused.push(url);
        }
    }
    say_refused(&fetching.context.log, &claimed.message, &refused);
    left_out.add(Limit::UrlLength, left_out_keys);
    (followed, left_out)
}
