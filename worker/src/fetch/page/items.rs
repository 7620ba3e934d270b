//! The items of a page.

use trawl_common::frontier::message::Message;
use trawl_common::spider::item::{Change, Item};
use trawl_common::spider::page_history::{Tally, Visited};
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extracted, ItemPage};

use crate::claimed::ClaimedUrl;

/// Returns items that mark each item of a page as gone. If their number is unknown, marks the first of each
/// kind.
pub(super) fn gone(claimed: &ClaimedUrl, last: &Visited, status: u16) -> Vec<Item> {
    let ClaimedUrl { url, message, spider, .. } = claimed;
    let kinds = || spider.spider.items.iter().map(|rule| rule.name.clone());
    let had = last.items.clone().unwrap_or_else(|| Tally::one_each(kinds()));
    let item = |(kind, id): (Option<&str>, String)| Item {
        id,
        url: url.to_string(),
        crawl: message.crawl.id.clone(),
        spider: message.crawl.spider.clone(),
        fetched_at: UnixMs::now().to_string(),
        status,
        depth: message.depth,
        item: kind.map(str::to_owned),
        change: Some(Change::Gone),
        final_url: None,
        referrer: None,
        path: None,
        fields: Default::default(),
    };
    had.ids(&message.crawl.spider, url).map(item).collect()
}

/// Returns the name from which the ids of a page's items are derived: several requests for one URL have
/// separate items.
pub(super) fn name<'a>(claimed: &'a ClaimedUrl, url: &'a CanonicalUrl) -> &'a str {
    claimed.request().map_or(url.as_str(), |request| request.key.as_str())
}

/// Returns an item of a URL's page, which represents the page at `url`.
pub(super) fn item(
    claimed: &ClaimedUrl,
    url: &CanonicalUrl,
    response: &Response,
    extracted: Extracted,
) -> Item {
    let Message { crawl, depth, .. } = &claimed.message;
    let (key, admitted) = (name(claimed, url), &claimed.url);
    extracted.into_item(&ItemPage { crawl, key, url, admitted, response, depth: *depth })
}
