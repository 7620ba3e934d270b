//! Common parts of script calls.

use std::collections::BTreeMap;

use serde_json::json;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Error, ErrorKind, Terms};

/// Maximum number of URLs in one call of a script: Redis does nothing else meanwhile.
pub(crate) const BATCH: usize = 500;

/// Groups the positions of entries by crawl, because each call of a script touches one crawl, and at most [`BATCH`]
/// entries of it.
pub(crate) fn by_crawl<'a, T>(
    entries: &'a [T],
    crawl: impl Fn(&'a T) -> &'a CrawlRef,
) -> Vec<(&'a CrawlRef, Vec<usize>)> {
    let mut places: BTreeMap<&CrawlRef, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        places.entry(crawl(entry)).or_default().push(at);
    }
    let batches = |(crawl, places): (&'a CrawlRef, Vec<usize>)| -> Vec<_> {
        places.chunks(BATCH).map(|places| (crawl, places.to_vec())).collect()
    };
    places.into_iter().flat_map(batches).collect()
}

/// Maximum size of payloads in one call of a script: a task may have some megabytes.
const BATCH_BYTES: usize = 8 << 20;

/// Splits entries into batches, none larger than one call of a script may be, each of at least one entry.
pub(crate) fn batches<T>(entries: &[T], bytes: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let (mut batches, mut from, mut sum) = (Vec::new(), 0, 0);
    for (at, entry) in entries.iter().enumerate() {
        let size = bytes(entry);
        if at > from && (at - from == BATCH || sum + size > BATCH_BYTES) {
            batches.push(&entries[from..at]);
            (from, sum) = (at, 0);
        }
        sum += size;
    }
    if from < entries.len() {
        batches.push(&entries[from..]);
    }
    batches
}

/// Returns a part of a record that may be absent.
pub(crate) fn optional(part: Option<impl ToString>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| part.to_string())
}

/// Returns the terms that may change while a crawl runs.
pub(crate) fn limits(terms: Terms) -> serde_json::Value {
    json!({
        "max_pages": optional(terms.max_pages),
        "max_per_host": optional(terms.max_per_host),
        "file": optional(terms.file),
    })
}

/// Returns the error for a crawl that admits nothing more.
pub(crate) fn over(crawl: &CrawlRef, status: &str) -> Error {
    Error::new(ErrorKind::Stale, format!("crawl {} is {status}", crawl.id))
}

/// Returns the error for an unexpected answer of a script.
pub(crate) fn corrupt(script: &str) -> Error {
    let what = "gave an answer of another shape: are all programs here of one version?";
    Error::new(ErrorKind::Corrupt, format!("redis: the script {script} {what}"))
}
