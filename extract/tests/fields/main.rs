//! Fields as spider files write them, from responses.

mod css;
mod formats;
mod hand_over;
mod jmespath;
mod script;
mod transform;
mod xpath;

use std::sync::atomic::AtomicBool;

use serde_json::Value;
use trawl_common::mistake::Mistake;
use trawl_common::names::SpiderName;
use trawl_common::settings::{Items, Settings};
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::{Origin, Spider, file};
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_extract::{Examined, Extraction, Extractor};

/// The spider of a file.
fn spider(text: &str) -> Spider {
    let usual = Spider::without_file(SpiderName::default(), &Items::default());
    file::read(usual, text, Origin::Local, &|_| None)
        .ready()
        .unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"))
}

/// A response of this type.
fn response(content_type: &str, body: impl AsRef<[u8]>) -> Response {
    Response {
        status: 200,
        headers: Headers::from_iter([("content-type", content_type)]),
        redirected_to: None,
        fetched_at: UnixMs(0),
        address: None,
        body: body.as_ref().to_vec().into(),
    }
}

fn html(body: &str) -> Response {
    response("text/html", body)
}

/// Extracts a page at `https://example.com/dir/page`.
fn extract(spider: &Spider, response: &Response) -> Extraction {
    let url = "https://example.com/dir/page".parse().expect("a URL");
    let extractor = Extractor::new(spider).expect("a sound spider");
    extractor.extract(&url, response, &AtomicBool::new(false)).expect("a page that can be read")
}

/// The fields of the items of a page, by a file.
fn items(file: &str, response: &Response) -> Vec<Value> {
    extract(&spider(file), response).items.into_iter().map(|item| item.fields.into()).collect()
}

/// The value of a field on a page.
fn value(field: &str, page: &str) -> Value {
    items(&format!("[fields]\nx = {field}\n"), &html(page)).remove(0)["x"].clone()
}

/// Each mistake of a file as `line:column what`.
fn mistakes(text: &str) -> Vec<String> {
    let settings = Settings::default();
    let examined =
        Examined::new(SpiderName::default(), text, &Arguments::default(), &settings, Origin::Local);
    let mistakes = examined.reading.mistakes.iter();
    let shown = |mistake: &Mistake| format!("{} {}", mistake.place.expect("a place"), mistake.what);
    mistakes.map(shown).collect()
}

#[track_caller]
fn one(text: &str, expected: &str) {
    let found = mistakes(text);
    assert!(found.len() == 1 && found[0].starts_with(expected), "{text}\n{found:#?}\nnot {expected}");
}
