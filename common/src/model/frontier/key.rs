//! The name of a record: a URL, a request, or a task.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};
use crate::names::{CrawlRef, SpiderName};
use crate::recorded::Recorded;
use crate::request::NewRequest;
use crate::task::NewTask;
use crate::web::url::{CanonicalUrl, Fingerprint, InvalidUrl, MAX_URL_BYTES};

/// The name of a record in the frontier. As text it is the URL; a URL, `#request:` and 32 hexadecimal digits; or
/// `task:` and 32 hexadecimal digits. The forms cannot be confused: a URL that is crawled begins with `http` and
/// has no fragment.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Key {
    /// A URL to fetch.
    Url(CanonicalUrl),
    /// A URL to request in a specified way.
    Request(RequestKey),
    /// A task for its spider's program.
    Task(TaskKey),
}

/// Returns the fingerprint that stands in memory for a URL or a task of a crawl, given as the text of its key.
pub fn fingerprint(crawl: &CrawlRef, key: &str) -> Fingerprint {
    Fingerprint::from_text(&format!("{} {} {key}", crawl.spider, crawl.id))
}

impl Key {
    /// Reads a key out of trawl's own records and messages ([`CanonicalUrl::recorded`]).
    pub fn recorded(text: &str) -> Result<Self, InvalidUrl> {
        match Self::with_digits(text) {
            Some(key) => Ok(key),
            None => CanonicalUrl::recorded(text).map(Self::Url),
        }
    }

    /// Returns the key that ends in digits, if the text is one.
    fn with_digits(text: &str) -> Option<Self> {
        let task = || text.parse().ok().map(Self::Task);
        task().or_else(|| text.parse().ok().map(Self::Request))
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Url(url) => url.as_str(),
            Self::Request(request) => request.as_str(),
            Self::Task(task) => task.as_str(),
        }
    }

    /// Returns the URL, if the key is nothing but a URL.
    pub fn url(&self) -> Option<&CanonicalUrl> {
        match self {
            Self::Url(url) => Some(url),
            Self::Request(_) | Self::Task(_) => None,
        }
    }

    /// Returns whether the key names a request.
    pub fn is_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }

    /// Returns the URL that is fetched for it, if any.
    pub fn page(&self) -> Option<CanonicalUrl> {
        match self {
            Self::Url(url) => Some(url.clone()),
            Self::Request(request) => Some(request.url()),
            Self::Task(_) => None,
        }
    }

    /// Returns the URL of a page, or the key of a task: what items name as their referrer.
    pub fn page_or_task(&self) -> String {
        self.page().map_or_else(|| self.to_string(), String::from)
    }

    /// Returns the task's key, if it is one.
    pub fn task(&self) -> Option<&TaskKey> {
        match self {
            Self::Url(_) | Self::Request(_) => None,
            Self::Task(task) => Some(task),
        }
    }
}

impl Recorded for Key {
    fn text(&self) -> &str {
        self.as_str()
    }

    fn read(text: &str) -> Result<Self, String> {
        Self::recorded(text).map_err(|error| error.to_string())
    }
}

impl From<CanonicalUrl> for Key {
    fn from(url: CanonicalUrl) -> Self {
        Self::Url(url)
    }
}

impl From<RequestKey> for Key {
    fn from(request: RequestKey) -> Self {
        Self::Request(request)
    }
}

impl From<TaskKey> for Key {
    fn from(task: TaskKey) -> Self {
        Self::Task(task)
    }
}

impl PartialEq<CanonicalUrl> for Key {
    fn eq(&self, url: &CanonicalUrl) -> bool {
        self.url() == Some(url)
    }
}

impl FromStr for Key {
    type Err = InvalidUrl;
    /// Parses a key as people write it: a URL in any form, or the key of a request or a task.
    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        match Self::with_digits(text.trim()) {
            Some(key) => Ok(key),
            None => CanonicalUrl::parse(text).map(Self::Url),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

text!(RequestKey, TaskKey);
as_text!(Key);

/// The name of a request: its URL, `#request:` and the first 128 bits of a SHA-256 in 32 lower-case hexadecimal
/// digits. Cheap to clone.
///
/// The hash is that of `<method>\n<URL>\n<unique>`, where `unique` is the request's `unique` if it has one, or
/// else its body. So a spider takes in a request once, whatever its header fields and its data.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey(Arc<str>);

/// The text between the URL and the digits.
const REQUEST: &str = "#request:";

/// Number of bytes of a request's key beyond its URL.
const BEYOND_URL: usize = REQUEST.len() + 32;

impl RequestKey {
    /// Returns the key of a request for `url`.
    pub(super) fn new(url: &CanonicalUrl, request: &NewRequest) -> Self {
        let unique = match &request.unique {
            Some(unique) => unique.as_str().as_bytes(),
            None => request.body.bytes(),
        };
        let hashed = [format!("{}\n{url}\n", request.method).as_bytes(), unique].concat();
        Self(format!("{url}{REQUEST}{}", Fingerprint::of_bytes(&hashed)).into())
    }

    /// Returns the key of a GET of `url` that carries data, and has no `unique` of its own.
    pub(crate) fn of_get(url: &CanonicalUrl) -> Self {
        Self::new(url, &NewRequest::get(url.as_str()))
    }

    /// Returns whether a key as text names a request, not a plain URL.
    pub fn is_one(key: &str) -> bool {
        let at = key.len().checked_sub(BEYOND_URL);
        at.and_then(|at| key.get(at..)).is_some_and(|end| end.starts_with(REQUEST))
    }

    /// Returns the URL to request.
    pub fn url(&self) -> CanonicalUrl {
        CanonicalUrl::recorded(&self.0[..self.0.len() - BEYOND_URL])
            .expect("a key of a request begins with a URL")
    }
}

/// The error for a text that is no [`RequestKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a request is named by a URL, `#request:` and 32 hexadecimal digits, {MAX_URL_BYTES} bytes at most")]
pub struct InvalidRequestKey;

impl FromStr for RequestKey {
    type Err = InvalidRequestKey;
    fn from_str(text: &str) -> Result<Self, InvalidRequestKey> {
        if !Self::is_one(text) || text.len() > MAX_URL_BYTES {
            return Err(InvalidRequestKey);
        }
        let (url, rest) = text.split_at(text.len() - BEYOND_URL);
        let id: Fingerprint = rest[REQUEST.len()..].parse().map_err(|_| InvalidRequestKey)?;
        let url = CanonicalUrl::recorded(url).map_err(|_| InvalidRequestKey)?;
        Ok(Self(format!("{url}{REQUEST}{id}").into()))
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a task: `task:` and the first 128 bits of a SHA-256 in 32 lower-case hexadecimal digits. Cheap to
/// clone.
///
/// The hash is that of `<spider>\n<unique>`, where `unique` is the task's `unique` if it has one, or else its
/// recipe. So a spider takes in a recipe once, and any language can compute the key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(Arc<str>);

/// The start of a task's key.
const PREFIX: &str = "task:";

impl TaskKey {
    /// Returns the key of a task of `spider`.
    pub fn new(spider: &SpiderName, task: &NewTask) -> Self {
        let unique = task.unique.as_ref().map_or(task.recipe.as_str(), |unique| unique.as_str());
        Self::from(Fingerprint::from_text(&format!("{spider}\n{unique}")))
    }

    /// Returns its hash, which is the id that the task's program is given.
    pub fn id(&self) -> Fingerprint {
        self.0[PREFIX.len()..].parse().expect("a key of a task ends in the digits of a fingerprint")
    }
}

impl From<Fingerprint> for TaskKey {
    fn from(id: Fingerprint) -> Self {
        Self(format!("{PREFIX}{id}").into())
    }
}

/// The error for a text that is no [`TaskKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task is named by `task:` and 32 hexadecimal digits")]
pub struct InvalidTaskKey;

impl FromStr for TaskKey {
    type Err = InvalidTaskKey;
    fn from_str(text: &str) -> Result<Self, InvalidTaskKey> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidTaskKey)?;
        let id: Fingerprint = digits.parse().map_err(|_| InvalidTaskKey)?;
        Ok(Self::from(id))
    }
}

impl fmt::Debug for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(spider: &str, line: &str) -> TaskKey {
        TaskKey::new(&spider.parse().unwrap(), &NewTask::from_line(line).unwrap())
    }

    #[test]
    fn a_task_is_named_by_its_spider_and_its_recipe_or_what_makes_it_one_with_others() {
        let plain = key("a", r#""x""#);
        assert_eq!(key("a", r#"{"recipe": "x", "priority": 7, "retries": 1}"#), plain);
        assert_ne!(key("b", r#""x""#), plain);
        assert_eq!(key("a", r#"{"recipe": "y", "unique": "x"}"#), plain, "else it would be done twice");
        let one = key("a", r#"{"recipe": "y", "unique": "1"}"#);
        assert_eq!(key("a", r#"{"recipe": "z", "unique": "1"}"#), one);
        let expected = Fingerprint::from_text("a\nx");
        assert_eq!((plain.as_str(), plain.id()), (&*format!("task:{expected}"), expected));
    }

    #[test]
    fn a_key_is_read_as_it_was_written_and_a_recipe_that_looks_like_a_url_is_none() {
        let request = NewRequest::from_json(r#"{"url": "", "method": "POST"}"#).unwrap();
        let request = RequestKey::new(&"http://a.example/?q".parse().unwrap(), &request);
        let task = key("a", r#""http://a.example/""#);
        for key in [Key::from(task), request.into(), "http://a.example/".parse().unwrap()] {
            assert_eq!(Key::recorded(key.as_str()).unwrap(), key);
            assert_eq!(key.as_str().parse::<Key>().unwrap(), key);
        }
        for no_key in ["task:", "task:12", "task:zz", "TASK:0123456789abcdef0123456789abcdef", "x"] {
            assert!(Key::recorded(no_key).is_err(), "{no_key}");
        }
    }

    #[test]
    fn a_request_is_named_by_its_url_and_by_its_method_and_its_body_or_what_makes_it_one_with_others() {
        let url = CanonicalUrl::parse("http://a.example/q").unwrap();
        let key = |json: &str| RequestKey::new(&url, &NewRequest::from_json(json).unwrap());
        let one = key(r#"{"url": "", "method": "POST", "body": "a"}"#);
        let expected =
            format!("http://a.example/q#request:{}", Fingerprint::from_text("POST\nhttp://a.example/q\na"));
        assert_eq!((one.as_str(), one.url()), (&*expected, url.clone()));
        let alike = r#"{"url": "", "method": "POST", "base64": "YQ==", "headers": {"a": "b"}, "data": 7}"#;
        assert_eq!(key(alike), one);
        assert_eq!(key(r#"{"url": "", "method": "POST", "body": "other", "unique": "a"}"#), one);
        for other in [r#"{"url": "", "method": "PUT", "body": "a"}"#, r#"{"url": "", "method": "POST"}"#] {
            assert_ne!(key(other), one);
        }
        let of_cut = "http://a.example/#request:0123";
        assert_eq!(Key::recorded(of_cut).unwrap(), "http://a.example/".parse::<Key>().unwrap(), "a page");
        for no_key in
            ["#request:0123456789abcdef0123456789abcdef", "ftp://a/#request:0123456789abcdef0123456789abcdef"]
        {
            assert!(no_key.parse::<RequestKey>().is_err(), "{no_key}");
        }
    }
}
