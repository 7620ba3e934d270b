//! The speed of extraction on one thread: `cargo test --release -p trawl-extract --test speed -- --ignored
//! --nocapture`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use trawl_common::names::SpiderName;
use trawl_common::settings;
use trawl_common::spider::Spider;
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_extract::Extractor;

/// The folder of Debian's package rust-doc.
const SITE: &str = "/usr/share/doc/rust-doc/html";

/// Number of pages that are read.
const PAGES: usize = 2_000;

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
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    let responses = responses();
    let bytes: usize = responses.iter().map(|response| response.body.len()).sum();
    let url = "https://example.com/".parse().expect("a URL");
    for (name, links, fields) in
        [("default fields", false, false), ("with links", true, false), ("with a tree", true, true)]
    {
        let fields = fields.then(|| ("heading".to_owned(), "h1 ::text".to_owned()));
        let items =
            settings::Items { links, fields: fields.into_iter().collect(), ..settings::Items::default() };
        let extractor =
            Extractor::new(&Spider::without_file(SpiderName::default(), &items)).expect("a selector");
        let mut best = f64::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            for response in &responses {
                extractor.extract(&url, response, &AtomicBool::new(false)).expect("a page");
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        eprintln!("{name}: {:.1} MB/s, {} pages, {bytes} bytes", bytes as f64 / best / 1e6, responses.len());
    }
}
