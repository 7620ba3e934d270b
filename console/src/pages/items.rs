//! A sample of the items of a crawl.

use askama::Template;

use crate::answers::Items;
use crate::ask::Call;
use crate::form::Segments;
use crate::page::{Answer, Here, Page, html};
use crate::shown::{Text, json};
use crate::visit::Visit;

/// The number of items shown.
const LIMIT: &str = "20";

#[derive(Template)]
#[template(path = "items.html")]
struct ItemsPage {
    page: Page,
    crawl: String,
    /// The items as JSON, each with its URL.
    items: Vec<(Text, String)>,
    has_more: bool,
}

pub(crate) async fn list(visit: Visit, Segments(crawl): Segments<String>) -> Answer {
    let call = Call::get(&["crawls", &crawl, "items"]).with("limit", LIMIT);
    let Items { items, next } = visit.ask(call).await?;
    let shown = |item: serde_json::Value| {
        let url = item["url"].as_str().unwrap_or_default().to_owned();
        (Text::from(url), json(&item))
    };
    html(&ItemsPage {
        page: Page::new(format!("Items of {crawl}"), Here::Crawls, &visit),
        crawl,
        items: items.into_iter().map(shown).collect(),
        has_more: next.is_some(),
    })
}
