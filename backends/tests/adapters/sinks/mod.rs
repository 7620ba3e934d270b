//! The file sinks keep every promise of their port and of their formats.

mod files;
mod lines;
mod parquet;
mod warc;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use trawl_backends::sinks::Sinks;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Page, Result, Sink, SinkFactory};
use trawl_common::settings::{Compress, SinkSettings};
use trawl_common::spider::Spider;
use trawl_common::spider::item::Item;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_testkit::conformance::sink::{item, spider};

fn worker() -> WorkerId {
    "w1".parse().unwrap()
}

/// Opens sinks as another process would, sharing nothing with those already open.
fn open_for(spider: &Spider, settings: &SinkSettings) -> Result<Arc<dyn Sink>> {
    Ok(Sinks::new(worker(), vec![settings.clone()]).open(spider)?.remove(0))
}

fn open(settings: &SinkSettings) -> Arc<dyn Sink> {
    open_for(&spider(), settings).unwrap()
}

fn unpacked(path: &Path, compress: Compress) -> String {
    let file = File::open(path).unwrap();
    let mut text = String::new();
    match compress {
        Compress::None => { file }.read_to_string(&mut text),
        Compress::Gzip => flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text),
        Compress::Zstd => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
    }
    .unwrap();
    text
}

/// A page of the suite's spider with one item of these fields.
fn page(number: usize, fields: Value) -> Page {
    let url: CanonicalUrl = format!("http://site.example/{number}").parse().unwrap();
    let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: spider().name };
    let item = item(&url, &crawl, number, fields);
    Page { key: url.into(), crawl, referrer: None, items: vec![item], exchange: None }
}

/// Returns the files of a folder whose names have this ending, by name.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    files.sort();
    files
}
