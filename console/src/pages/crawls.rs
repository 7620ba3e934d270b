//! The list of crawls.

use askama::Template;
use serde::Deserialize;
use strum::VariantNames;
use trawl_common::frontier::crawl::CrawlState;

use crate::address::address;
use crate::answers::{Crawl, Crawls};
use crate::ask::Call;
use crate::form::{Asked, written};
use crate::page::{Answer, Here, Page, html};
use crate::shown::Text;
use crate::visit::Visit;

/// The number of crawls on one page.
const LIMIT: &str = "50";

/// The choice of crawls that are running and stand still.
const STALLED: &str = "stalled";

/// The filter and the position in the list.
#[derive(Deserialize)]
pub(crate) struct Listing {
    status: Option<String>,
    spider: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "crawls.html")]
struct CrawlsPage {
    page: Page,
    crawls: Vec<Crawl>,
    /// The choices of a status: its name, its address, and whether it is selected.
    choices: Vec<(&'static str, String, bool)>,
    status: Option<Text>,
    spider: Option<Text>,
    is_filtered: bool,
    is_first: bool,
    /// The address of the next page.
    next: Option<String>,
}

pub(crate) async fn list(visit: Visit, Asked(listing): Asked<Listing>) -> Answer {
    let (status, spider) = (written(&listing.status), written(&listing.spider));
    let call = Call::get(&["crawls"]).with("limit", LIMIT);
    let call = match status {
        Some(STALLED) => call.with("stalled", "true"),
        status => call.with_any("status", status),
    };
    let call = call.with_any("spider", spider).with_any("cursor", listing.cursor.as_deref());
    let Crawls { crawls, next } = visit.ask(call).await?;
    let choice = |name: &'static str| {
        let chosen = (name != "all").then_some(name);
        (name, path(chosen, spider, None), chosen == status)
    };
    let names = ["all"].into_iter().chain(CrawlState::VARIANTS.iter().copied()).chain([STALLED]);
    let is_first = listing.cursor.is_none();
    html(&CrawlsPage {
        // Only the first page changes.
        page: Page::new("Crawls", Here::Crawls, &visit).live(is_first),
        choices: names.map(choice).collect(),
        next: next.map(|next| path(status, spider, Some(&next))),
        is_filtered: status.is_some() || spider.is_some(),
        status: status.map(Text::from),
        spider: spider.map(Text::from),
        is_first,
        crawls,
    })
}

fn path(status: Option<&str>, spider: Option<&str>, cursor: Option<&str>) -> String {
    let named = [("status", status), ("spider", spider), ("cursor", cursor)];
    address("/crawls", named.into_iter().filter_map(|(name, value)| Some((name, value?))))
}
