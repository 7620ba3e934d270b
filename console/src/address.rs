//! Addresses of pages.

use trawl_common::frontier::TaskKey;
use url::form_urlencoded;

/// Returns the address of a page with query parameters.
pub(crate) fn address<K: AsRef<str>, V: AsRef<str>>(
    page: &str,
    fields: impl IntoIterator<Item = (K, V)>,
) -> String {
    match form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish() {
        none if none.is_empty() => page.to_owned(),
        query => format!("{page}?{query}"),
    }
}

/// Returns the address of the page of a URL or of a task in a crawl.
pub(crate) fn standing(key: &str, crawl: &str) -> String {
    match is_task(key) {
        true => task(key, Some(crawl)),
        false => address(&format!("/crawls/{crawl}/url"), [("url", key)]),
    }
}

/// Returns the address of the page of a task, in a given crawl if there is one.
pub(crate) fn task(key: &str, crawl: Option<&str>) -> String {
    address(&format!("/tasks/{key}"), crawl.map(|crawl| ("crawl", crawl)))
}

/// Whether the key is a task's.
pub(crate) fn is_task(key: &str) -> bool {
    key.parse::<TaskKey>().is_ok()
}
