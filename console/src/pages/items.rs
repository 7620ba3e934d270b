//! Items of a crawl: a sample of them.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use trawl_common::text::{escape_json, printable};

use crate::Console;
use crate::answers::Items;
use crate::ask::Call;
use crate::guard::Visitor;
use crate::page::{Answer, Here, Page, html};

/// How many are shown.
const LIMIT: &str = "20";
/// How much is shown of one, in bytes.
const LONGEST: usize = 16 * 1024;

#[derive(Template)]
#[template(path = "items.html")]
struct ItemsPage {
    page: Page,
    crawl: String,
    /// Each with its URL, as JSON.
    items: Vec<(String, String)>,
    has_more: bool,
}

pub(crate) async fn list(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Path(crawl): Path<String>,
) -> Answer {
    let call = Call::get(&["crawls", &crawl, "items"]).with("limit", LIMIT);
    let Items { items, next } = console.ask(&visitor, call).await?;
    let shown = |item: serde_json::Value| {
        let url = item["url"].as_str().unwrap_or_default();
        (printable(url, LONGEST), json(&item))
    };
    html(&ItemsPage {
        page: Page::new(format!("Items of {crawl}"), Here::Crawls, &visitor),
        crawl,
        items: items.into_iter().map(shown).collect(),
        has_more: next.is_some(),
    })
}

/// An item on several lines, cut where it is too long.
fn json(item: &serde_json::Value) -> String {
    let text = serde_json::to_string_pretty(item).unwrap_or_default();
    let mut shown = String::new();
    for line in text.lines() {
        if shown.len() + line.len() > LONGEST {
            shown.push('\u{2026}');
            break;
        }
        shown.push_str(&escape_json(line));
        shown.push('\n');
    }
    shown
}
