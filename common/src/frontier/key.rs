//! What names a record: a URL, or a task.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::names::SpiderName;
use crate::task::NewTask;
use crate::web::url::{CanonicalUrl, Fingerprint, InvalidUrl};

/// What names a record in the frontier. As text it is the URL, or `task:` and 32 hexadecimal digits; no URL that is crawled begins
/// so, for each begins with `http`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Key {
    /// A URL to fetch.
    Url(CanonicalUrl),
    /// A task for its spider's program.
    Task(TaskKey),
}

impl Key {
    /// Reads a key out of trawl's own records and messages ([`CanonicalUrl::recorded`]).
    pub fn recorded(text: &str) -> Result<Self, InvalidUrl> {
        match text.parse() {
            Ok(task) => Ok(Self::Task(task)),
            Err(InvalidTaskKey) => CanonicalUrl::recorded(text).map(Self::Url),
        }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Url(url) => url.as_str(),
            Self::Task(task) => task.as_str(),
        }
    }

    /// The URL, if it is one.
    pub fn url(&self) -> Option<&CanonicalUrl> {
        match self {
            Self::Url(url) => Some(url),
            Self::Task(_) => None,
        }
    }

    /// The task, if it is one.
    pub fn task(&self) -> Option<&TaskKey> {
        match self {
            Self::Url(_) => None,
            Self::Task(task) => Some(task),
        }
    }
}

impl From<CanonicalUrl> for Key {
    fn from(url: CanonicalUrl) -> Self {
        Self::Url(url)
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
    /// From a key as people write it: a URL in any form, or a task's.
    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        match text.trim().parse() {
            Ok(task) => Ok(Self::Task(task)),
            Err(InvalidTaskKey) => CanonicalUrl::parse(text).map(Self::Url),
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

as_text!(Key);

/// What names a task: `task:` and the first 128 bits of a SHA-256 in 32 lower-case hexadecimal digits. Cheap to clone.
///
/// What is hashed is `<spider>\n<unique>`, where `unique` is what the task says that makes it one with others, or else its recipe. So a
/// spider takes in a recipe once, and any language can compute the key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(Arc<str>);

/// What the key of a task begins with.
const PREFIX: &str = "task:";

impl TaskKey {
    /// The key of a task of `spider`.
    pub fn of(spider: &SpiderName, task: &NewTask) -> Self {
        let unique = task.unique.as_ref().map_or(task.recipe.as_str(), |unique| unique.as_str());
        Self::from(Fingerprint::of(&format!("{spider}\n{unique}")))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its hash: the id that the task's program is given.
    pub fn id(&self) -> Fingerprint {
        self.0[PREFIX.len()..].parse().expect("a key of a task ends in the digits of a fingerprint")
    }
}

impl From<Fingerprint> for TaskKey {
    fn from(id: Fingerprint) -> Self {
        Self(format!("{PREFIX}{id}").into())
    }
}

/// A text that is no [`TaskKey`].
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

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
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
        TaskKey::of(&spider.parse().unwrap(), &NewTask::from_line(line).unwrap())
    }

    #[test]
    fn a_task_is_named_by_its_spider_and_its_recipe_or_what_makes_it_one_with_others() {
        let plain = key("a", r#""x""#);
        assert_eq!(key("a", r#"{"recipe": "x", "priority": 7, "retries": 1}"#), plain);
        assert_ne!(key("b", r#""x""#), plain);
        assert_eq!(key("a", r#"{"recipe": "y", "unique": "x"}"#), plain, "else it would be done twice");
        let one = key("a", r#"{"recipe": "y", "unique": "1"}"#);
        assert_eq!(key("a", r#"{"recipe": "z", "unique": "1"}"#), one);
        let expected = Fingerprint::of("a\nx");
        assert_eq!((plain.as_str(), plain.id()), (&*format!("task:{expected}"), expected));
    }

    #[test]
    fn a_key_is_read_as_it_was_written_and_a_recipe_that_looks_like_a_url_is_none() {
        for key in [Key::from(key("a", r#""http://a.example/""#)), "http://a.example/".parse().unwrap()] {
            assert_eq!(Key::recorded(key.as_str()).unwrap(), key);
            assert_eq!(key.as_str().parse::<Key>().unwrap(), key);
        }
        for no_key in ["task:", "task:12", "task:zz", "TASK:0123456789abcdef0123456789abcdef", "x"] {
            assert!(Key::recorded(no_key).is_err(), "{no_key}");
        }
    }
}
