//! Addresses of pages.

use trawl_common::frontier::TaskKey;
use url::form_urlencoded;

/// The address of a page, with what it is asked for.
pub(crate) fn address<K: AsRef<str>, V: AsRef<str>>(
    page: &str,
    fields: impl IntoIterator<Item = (K, V)>,
) -> String {
    match form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish() {
        none if none.is_empty() => page.to_owned(),
        query => format!("{page}?{query}"),
    }
}

/// The page of a URL or of a task, as a crawl knows it.
pub(crate) fn standing(key: &str, crawl: &str) -> String {
    match is_task(key) {
        true => task(key, Some(crawl)),
        false => address(&format!("/crawls/{crawl}/url"), [("url", key)]),
    }
}

/// The page of a task; as one crawl knows it, if that is named.
pub(crate) fn task(key: &str, crawl: Option<&str>) -> String {
    address(&format!("/tasks/{key}"), crawl.map(|crawl| ("crawl", crawl)))
}

/// Whether a key is that of a task.
pub(crate) fn is_task(key: &str) -> bool {
    key.parse::<TaskKey>().is_ok()
}
