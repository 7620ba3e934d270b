//! One URL of a crawl: its state, or how it ended.

use askama::Template;
use serde::Deserialize;

use crate::answers::Url;
use crate::ask::Call;
use crate::form::{Asked, Segments, written};
use crate::page::{Answer, Here, Page, html};
use crate::shown::Text;
use crate::visit::Visit;

#[derive(Deserialize)]
pub(crate) struct Wanted {
    url: Option<String>,
}

#[derive(Template)]
#[template(path = "url.html")]
struct UrlPage {
    page: Page,
    crawl: String,
    wanted: Text,
    found: Option<Url>,
}

pub(crate) async fn show(
    visit: Visit,
    Segments(crawl): Segments<String>,
    Asked(Wanted { url }): Asked<Wanted>,
) -> Answer {
    let found = match written(&url) {
        Some(url) => Some(visit.ask(Call::get(&["crawls", &crawl, "url"]).with("url", url)).await?),
        None => None,
    };
    let page = Page::new("One URL", Here::Crawls, &visit);
    html(&UrlPage { page, crawl, wanted: url.unwrap_or_default().into(), found })
}
