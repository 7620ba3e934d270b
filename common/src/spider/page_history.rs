//! Page history: what is remembered of a page between crawls.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::names::SpiderName;
use crate::recorded;
use crate::spider::item::{Change, Item, item_id};
use crate::time::UnixMs;
use crate::web::headers::Headers;
use crate::web::url::{CanonicalUrl, Fingerprint};

/// The status of a server that says that a page has not changed.
pub const NOT_MODIFIED: u16 = 304;

/// A page at its last request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visited {
    /// The time when the page arrived, or when its server said that it had not changed.
    pub fetched_at: UnixMs,
    /// The validators to ask its server with; empty if a redirect led to the page, as they belong to another URL.
    pub validators: Validators,
    /// The [`fingerprint`] of the extracted items.
    pub content: Fingerprint,
    /// The change found then.
    pub change: Change,
    /// Number of links from the start of the crawl.
    pub depth: u16,
    /// Its items, counted by kind; `None` if an older version of trawl remembered the page.
    pub items: Option<Tally>,
    /// The answer at the last request; `None` if an older version of trawl remembered the page.
    pub answer: Option<PageAnswer>,
}

/// The answer to the last request for a page, for people who ask what came of it. Its text has the status, the number
/// of links, and the final URL of redirects if there were any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageAnswer {
    /// The status: 304 if the server said that the page had not changed.
    pub status: u16,
    /// The number of its links that were followed, when it was last read.
    pub links: u32,
    /// The final URL of its redirects.
    #[serde(with = "recorded::option")]
    pub landed: Option<CanonicalUrl>,
}

impl fmt::Display for PageAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, links, landed } = self;
        write!(f, "{status} {links}")?;
        landed.as_ref().map_or(Ok(()), |url| write!(f, " {url}"))
    }
}

/// The error for a text that is no [`PageAnswer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the answer to a request: that has a status and a number of links")]
pub struct InvalidAnswer;

impl FromStr for PageAnswer {
    type Err = InvalidAnswer;
    fn from_str(text: &str) -> Result<Self, InvalidAnswer> {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().ok_or(InvalidAnswer);
        let (status, links) = (next()?.parse(), next()?.parse());
        let landed = parts.next().map(CanonicalUrl::recorded).transpose();
        match (status, links, landed) {
            (Ok(status), Ok(links), Ok(landed)) => Ok(Self { status, links, landed }),
            _ => Err(InvalidAnswer),
        }
    }
}

impl Visited {
    /// Returns whether a crawl that started at `start` has made this visit itself. It comes again if its worker
    /// died between remembering the page and finishing its URL.
    pub fn is_since(&self, start: UnixMs) -> bool {
        self.fetched_at >= start
    }
}

/// Returns the change of a page whose content is `content` now, in a crawl that started at `start`. A repeated
/// visit of the same crawl gets the same answer.
pub fn change(last: Option<&Visited>, content: Fingerprint, start: UnixMs) -> Change {
    let Some(last) = last else { return Change::New };
    let again = last.is_since(start);
    match last.change {
        Change::New if again => Change::New,
        _ if last.content != content => Change::Changed,
        before if again => before,
        _ => Change::Unchanged,
    }
}

/// Returns the fingerprint of the kinds and fields of items, in order. It is the same on every machine, whatever
/// the order of the fields; pages that differ only elsewhere share it.
pub fn fingerprint(items: &[Item]) -> Fingerprint {
    let contents = items.iter().map(|item| serde_json::json!([item.item, item.fields]));
    let mut contents: serde_json::Value = contents.collect();
    // Maps are sorted already, unless some dependency makes them keep their order.
    contents.sort_all_objects();
    Fingerprint::from_text(&contents.to_string())
}

/// The number of items of each kind on a page, by the names of the kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally(Vec<(Option<String>, u16)>);

impl Tally {
    /// Counts the items under the page's own URL: others stand for a page that this one named as canonical.
    pub fn new(url: &CanonicalUrl, items: &[Item]) -> Self {
        let mut kinds: Vec<(Option<String>, u16)> = Vec::new();
        for item in items.iter().filter(|item| item.url == url.as_str()) {
            match kinds.iter_mut().find(|(kind, _)| *kind == item.item) {
                Some((_, count)) => *count = count.saturating_add(1),
                None => kinds.push((item.item.clone(), 1)),
            }
        }
        Self(kinds)
    }

    /// Adds `more` items without a kind.
    #[must_use]
    pub fn and(mut self, more: u64) -> Self {
        let more = u16::try_from(more).unwrap_or(u16::MAX);
        match self.0.iter_mut().find(|(kind, _)| kind.is_none()) {
            Some((_, count)) => *count = count.saturating_add(more),
            None => self.0.push((None, more)),
        }
        self
    }

    /// The number of items.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// Counts one item of each of these kinds.
    pub fn one_each(kinds: impl Iterator<Item = Option<String>>) -> Self {
        Self(kinds.map(|kind| (kind, 1)).collect())
    }

    /// Returns the kind and the id of each item that a spider found on this page.
    pub fn ids(
        &self,
        spider: &SpiderName,
        url: &CanonicalUrl,
    ) -> impl Iterator<Item = (Option<&str>, String)> {
        let all =
            self.0.iter().flat_map(|(kind, count)| (0..*count).map(move |number| (kind.as_deref(), number)));
        all.map(move |(kind, number)| (kind, item_id(spider, url.as_str(), kind, number.into())))
    }
}

/// The values with which to ask a server whether a page has changed (RFC 9110 8.8), as the server sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    etag: Option<Box<str>>,
    last_modified: Option<Box<str>>,
}

impl Validators {
    /// Maximum length of a validator that is kept, in bytes.
    const MAX_VALIDATOR: usize = 1024;

    /// Creates validators. Values that are empty, too long, or have control characters are dropped, because they
    /// cannot be sent back.
    pub fn new(etag: Option<&str>, last_modified: Option<&str>) -> Self {
        let usable = |text: &&str| {
            (1..=Self::MAX_VALIDATOR).contains(&text.len())
                && !text.chars().any(|character| character.is_control())
        };
        let kept = |text: Option<&str>| text.filter(usable).map(Box::from);
        Self { etag: kept(etag), last_modified: kept(last_modified) }
    }

    /// Returns the validators of a response.
    pub fn from_headers(headers: &Headers) -> Self {
        Self::new(headers.get("etag"), headers.get("last-modified"))
    }

    /// Returns the entity tag, strong or weak, with its quotes.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// Returns the date of the last change, as the server wrote it.
    pub fn last_modified(&self) -> Option<&str> {
        self.last_modified.as_deref()
    }

    /// Returns whether there are no validators.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn item(kind: Option<&str>, fields: Value) -> Item {
        let Value::Object(fields) = fields else { panic!("fields are an object") };
        Item {
            id: "1".to_owned(),
            url: "http://a.example/".to_owned(),
            crawl: "c1".parse().unwrap(),
            spider: "s1".parse().unwrap(),
            fetched_at: UnixMs::now().to_string(),
            status: 200,
            depth: 0,
            item: kind.map(str::to_owned),
            change: None,
            final_url: None,
            referrer: None,
            path: None,
            fields,
        }
    }

    fn visited(content: &str, change: Change, fetched_at: u64) -> Visited {
        let content = Fingerprint::from_text(content);
        Visited {
            fetched_at: UnixMs(fetched_at),
            validators: Validators::default(),
            content,
            change,
            depth: 0,
            items: None,
            answer: None,
        }
    }

    #[test]
    fn a_fingerprint_is_the_same_on_every_machine_and_of_every_release() {
        let items = [
            item(Some("book"), json!({ "title": "\u{fc}", "price": 1.5, "tags": [1, null] })),
            item(None, json!({})),
        ];
        let written = r#"[["book",{"price":1.5,"tags":[1,null],"title":"ü"}],[null,{}]]"#;
        assert_eq!(fingerprint(&items), Fingerprint::from_text(written));
    }

    #[test]
    fn a_fingerprint_tells_kinds_fields_and_their_order_on_the_page_apart() {
        let (a, b) = (item(None, json!({ "x": 1 })), item(None, json!({ "x": "1" })));
        let kind = item(Some("k"), json!({ "x": 1 }));
        let all =
            [vec![], vec![a.clone()], vec![b.clone()], vec![kind], vec![a.clone(), b.clone()], vec![b, a]];
        let distinct: std::collections::HashSet<_> = all.iter().map(|items| fingerprint(items)).collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn a_page_is_new_then_unchanged_or_changed() {
        let last = visited("a", Change::New, 10);
        let (same, other, start) = (Fingerprint::from_text("a"), Fingerprint::from_text("b"), UnixMs(11));
        assert_eq!(change(None, same, start), Change::New);
        assert_eq!(change(Some(&last), same, start), Change::Unchanged);
        assert_eq!(change(Some(&last), other, start), Change::Changed);
    }

    #[test]
    fn a_crawl_repeats_the_same_change_of_a_page() {
        let start = UnixMs(10);
        for before in [Change::New, Change::Changed, Change::Unchanged] {
            let last = visited("a", before, 10);
            assert_eq!(change(Some(&last), Fingerprint::from_text("a"), start), before);
        }
        let new = visited("a", Change::New, 10);
        assert_eq!(change(Some(&new), Fingerprint::from_text("b"), start), Change::New);
        let unchanged = visited("a", Change::Unchanged, 10);
        assert_eq!(change(Some(&unchanged), Fingerprint::from_text("b"), start), Change::Changed);
    }

    #[test]
    fn validators_are_kept_as_they_came_and_absurd_ones_are_not() {
        let long = format!("\"{}\"", "x".repeat(1022));
        for kept in ["\"a\"", "W/\"b\"", "unquoted", "\"\u{fc} b\"", &long] {
            assert_eq!(Validators::new(Some(kept), None).etag(), Some(kept));
        }
        let too_long = "x".repeat(1025);
        for absurd in ["", "\"a\r\nHost: evil\"", "\"\u{0}\"", "\"\u{85}\"", &too_long] {
            assert!(Validators::new(Some(absurd), Some(absurd)).is_empty(), "{absurd:?}");
        }
        let headers = Headers::from_iter([("etag", "\"a\""), ("last-modified", "yesterday")]);
        assert_eq!(Validators::from_headers(&headers), Validators::new(Some("\"a\""), Some("yesterday")));
    }

    proptest! {
        #[test]
        fn the_order_of_fields_does_not_matter(mut fields in prop::collection::vec(("[a-z]{1,4}", any::<i32>()), 0..8)) {
            fields.sort();
            fields.dedup_by(|a, b| a.0 == b.0);
            let object = |fields: &[(String, i32)]| {
                Value::Object(fields.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>())
            };
            let there = fingerprint(&[item(None, object(&fields))]);
            fields.reverse();
            prop_assert_eq!(there, fingerprint(&[item(None, object(&fields))]));
        }
    }
}
