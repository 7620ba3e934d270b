//! A worker's unit of work: a URL or a request to fetch, or a task for a program.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::key::{Key, TaskKey};
use super::request::Request;
use crate::names::SpiderName;
use crate::priority::Priority;
use crate::recorded;
use crate::request::NewRequest;
use crate::task::NewTask;
use crate::web::url::{CanonicalUrl, InvalidUrl};

/// The subject of a record, with all that is needed to work on it. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredWork", into = "StoredWork")]
pub enum Work {
    /// A URL to fetch.
    Url(CanonicalUrl),
    /// A URL to fetch in a specified way.
    Request(Arc<Request>),
    /// A task for its spider's program.
    Task(Arc<Task>),
}

/// A task that a spider has taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The name of its record.
    pub key: TaskKey,
    /// The submitted task. Its spider is that of its crawl.
    pub new: NewTask,
}

impl Task {
    /// Returns a task of `spider`.
    pub fn new(spider: &SpiderName, new: NewTask) -> Self {
        let new = NewTask { spider: None, ..new };
        Self { key: TaskKey::new(spider, &new), new }
    }

    /// Returns the payload that stores keep beside its record: the same JSON object as a line of `tasks.jsonl`.
    pub fn payload(&self) -> String {
        serde_json::to_string(&self.new).expect("text and numbers are JSON")
    }

    /// Parses the payload that a store has kept under `key`; `None` if it is no task.
    pub fn stored(key: TaskKey, payload: &str) -> Option<Self> {
        NewTask::from_line(payload).ok().map(|new| Self { key, new })
    }
}

impl Work {
    /// Returns the work for a request of `url`: just the URL, if the request specifies nothing else.
    ///
    /// Fails if it cannot have a key ([`Request::new`]).
    pub fn of_request(url: CanonicalUrl, new: NewRequest) -> Result<Self, InvalidUrl> {
        match new.is_plain() {
            true => Ok(Self::Url(url)),
            false => Request::new(url, new).map(Self::from),
        }
    }

    /// Returns the work of a record under `key` with this stored payload; `None` if the payload cannot be read.
    pub fn stored(key: Key, payload: &str) -> Option<Self> {
        match key {
            Key::Url(url) => Some(Self::Url(url)),
            Key::Request(key) => Request::stored(key, payload).map(Self::from),
            Key::Task(key) => Task::stored(key, payload).map(Self::from),
        }
    }

    /// Returns the payload that stores keep beside its record; `None` for a URL, which its key describes in full.
    pub fn payload(&self) -> Option<String> {
        match self {
            Self::Url(_) => None,
            Self::Request(request) => Some(request.payload()),
            Self::Task(task) => Some(task.payload()),
        }
    }

    /// Returns whether it has a payload.
    pub fn has_payload(&self) -> bool {
        !matches!(self, Self::Url(_))
    }

    /// Returns the approximate size of the payload in bytes.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Url(_) => 0,
            Self::Request(request) => request.bytes(),
            Self::Task(task) => task.new.recipe.as_str().len(),
        }
    }

    /// Returns the key of its record.
    pub fn key(&self) -> Key {
        match self {
            Self::Url(url) => Key::Url(url.clone()),
            Self::Request(request) => Key::Request(request.key.clone()),
            Self::Task(task) => Key::Task(task.key.clone()),
        }
    }

    /// Returns the text of that key.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Url(url) => url.as_str(),
            Self::Request(request) => request.key.as_str(),
            Self::Task(task) => task.key.as_str(),
        }
    }

    /// Returns the URL, if it is nothing but a URL.
    pub fn url(&self) -> Option<&CanonicalUrl> {
        match self {
            Self::Url(url) => Some(url),
            Self::Request(_) | Self::Task(_) => None,
        }
    }

    /// Returns the URL that is fetched for it, if any.
    pub fn page(&self) -> Option<&CanonicalUrl> {
        match self {
            Self::Url(url) => Some(url),
            Self::Request(request) => Some(&request.url),
            Self::Task(_) => None,
        }
    }

    /// Returns its priority; 0 if it has none.
    pub fn priority(&self) -> Priority {
        match self {
            Self::Url(_) => Priority::default(),
            Self::Request(request) => request.new.priority,
            Self::Task(task) => task.new.priority,
        }
    }

    /// Returns its own limit of retries, if it has one.
    pub fn retries(&self) -> Option<u32> {
        match self {
            Self::Url(_) => None,
            Self::Request(request) => request.new.retries,
            Self::Task(task) => task.new.retries,
        }
    }

    /// Returns the request, if it is one.
    pub fn request(&self) -> Option<&Arc<Request>> {
        match self {
            Self::Request(request) => Some(request),
            Self::Url(_) | Self::Task(_) => None,
        }
    }

    /// Returns the task, if it is one.
    pub fn task(&self) -> Option<&Arc<Task>> {
        match self {
            Self::Url(_) | Self::Request(_) => None,
            Self::Task(task) => Some(task),
        }
    }
}

/// The form in which stores keep work.
#[derive(Serialize, Deserialize)]
struct StoredWork {
    #[serde(with = "recorded")]
    key: Key,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
}

impl From<Work> for StoredWork {
    fn from(work: Work) -> Self {
        Self { key: work.key(), payload: work.payload() }
    }
}

impl TryFrom<StoredWork> for Work {
    type Error = &'static str;

    fn try_from(StoredWork { key, payload }: StoredWork) -> Result<Self, Self::Error> {
        Self::stored(key, payload.as_deref().unwrap_or_default())
            .ok_or("the payload of a task or a request cannot be read")
    }
}

impl From<CanonicalUrl> for Work {
    fn from(url: CanonicalUrl) -> Self {
        Self::Url(url)
    }
}

impl From<Request> for Work {
    fn from(request: Request) -> Self {
        Self::Request(Arc::new(request))
    }
}

impl From<Task> for Work {
    fn from(task: Task) -> Self {
        Self::Task(Arc::new(task))
    }
}

impl PartialEq<CanonicalUrl> for Work {
    fn eq(&self, url: &CanonicalUrl) -> bool {
        self.url() == Some(url)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_as_it_was_stored() {
        let line = r#"{"recipe": "[1]\n", "unique": "u", "priority": -2.5, "retries": 0, "project": "books", "spider": "b"}"#;
        let task = Task::new(&"a".parse().unwrap(), NewTask::from_line(line).unwrap());
        assert_eq!(task.new.spider, None, "its crawl says that");
        assert_eq!(Task::stored(task.key.clone(), &task.payload()), Some(task.clone()));
        assert_eq!(Task::stored(task.key, "no payload"), None);
    }
}
