//! The speed of extraction on one thread, for the large pages of Debian's package rust-doc: `cargo test --release
//! -p trawl-extract --test speed -- --ignored --nocapture`. One of the measurements can be named after `speed --`, for a
//! count of its instructions by `perf stat`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use trawl_common::mistake::Sited;
use trawl_common::names::SpiderName;
use trawl_common::settings::Items;
use trawl_common::spider::{Field, FieldSource, Follow, ItemRule, PageField, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_extract::Extractor;

/// The folder of Debian's package rust-doc.
const SITE: &str = "/usr/share/doc/rust-doc/html";

/// Sizes of the pages that are read, in bytes.
const SIZES: std::ops::Range<usize> = 150_000..600_000;

/// Number of pages that are read.
const PAGES: usize = 100;

/// Selectors of ten fields.
const SELECTORS: &[&str] = &[
    ".main-heading .fqn ::text",
    ".version::text",
    ".sidebar .location ::text",
    "#main-content > .docblock p::text",
    ".item-decl pre ::text",
    ".method h4.code-header ::text",
    ".impl h3.code-header a::attr(href)",
    "#implementations a.anchor::attr(href)",
    "a.srclink::attr(href)",
    ".sidebar-elems li a::text",
];

/// XPath expressions of five fields.
const EXPRESSIONS: &[&str] = &[
    "//h1//text()",
    "//a[contains(@class, 'srclink')]/@href",
    "//section[@id='main-content']//p[1]",
    "//div[@class='sidebar-elems']//li[position() < 4]/a/text()",
    "//*[@id='implementations']/following-sibling::div[1]",
];

fn responses() -> Vec<Response> {
    let mut found = Vec::new();
    pages(Path::new(SITE), &mut found);
    found.sort();
    let step = found.len().div_ceil(PAGES).max(1);
    let read = |path: &PathBuf| std::fs::read(path).expect("a page");
    let response = |body: Vec<u8>| Response {
        status: 200,
        headers: Headers::from_iter([("content-type", "text/html")]),
        redirected_to: None,
        fetched_at: UnixMs(0),
        address: None,
        body: body.into(),
    };
    found.iter().step_by(step).map(read).map(response).collect()
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("package rust-doc is installed") {
        let entry = entry.expect("an entry");
        let path = entry.path();
        let size = || entry.metadata().map_or(0, |data| data.len() as usize);
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "html") && SIZES.contains(&size()) {
            found.push(path);
        }
    }
}

fn measure(name: &str, fields: impl IntoIterator<Item = FieldSource>, follow: Option<Follow>) {
    let responses = responses();
    let bytes: usize = responses.iter().map(|response| response.body.len()).sum();
    let url = "https://example.com/".parse().expect("a URL");
    let title = ("title".to_owned(), Field::new(FieldSource::Page(PageField::Title)));
    let fields = fields.into_iter().enumerate().map(|(number, from)| (number.to_string(), Field::new(from)));
    let fields = std::iter::once(title).chain(fields).collect();
    let items = vec![ItemRule { name: None, each: None, fields, page: None }];
    let plain = Spider::without_file(SpiderName::default(), &Items::default());
    let extractor = Extractor::new(&Spider { items, follow, ..plain }).expect("selectors");
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for response in &responses {
            extractor.extract(&url, response, &AtomicBool::new(false)).expect("a page");
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    let (count, size) = (responses.len() as f64, bytes as f64);
    let (speed, rate, mean) = (size / best / 1e6, count / best, size / count / 1e3);
    eprintln!("{name}: {rate:.0} pages/s, {speed:.1} MB/s, {count} pages of {mean:.0} KB on average");
}

fn css(selectors: &[&str]) -> Vec<FieldSource> {
    selectors.iter().map(|selector| FieldSource::Css(Sited::nowhere(*selector))).collect()
}

#[test]
#[ignore = "a measurement"]
fn title() {
    measure("title", [], None);
}

#[test]
#[ignore = "a measurement"]
fn links() {
    measure("links and title", [], Some(Follow::default()));
}

#[test]
#[ignore = "a measurement"]
fn tree() {
    measure("one field by a tree", css(&SELECTORS[..1]), None);
}

#[test]
#[ignore = "a measurement"]
fn selectors() {
    measure("links, title, ten fields by selectors", css(SELECTORS), Some(Follow::default()));
}

#[test]
#[ignore = "a measurement"]
fn expressions() {
    let fields = EXPRESSIONS.iter().map(|expression| FieldSource::XPath(Sited::nowhere(*expression)));
    measure("five fields by XPath", fields, None);
}

#[test]
#[ignore = "a measurement"]
fn main_text() {
    measure("main text", [FieldSource::Page(PageField::Text)], None);
}
