//! What a worker is to do: fetch a URL, in a way of its own or not, or have a program do a task.

use std::fmt;
use std::sync::Arc;

use super::key::{Key, TaskKey};
use super::request::Request;
use crate::jobs::Priority;
use crate::names::SpiderName;
use crate::request::NewRequest;
use crate::task::NewTask;
use crate::web::url::{CanonicalUrl, InvalidUrl};

/// What a record stands for, with all that it takes to work on it. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub enum Work {
    /// A URL to fetch.
    Url(CanonicalUrl),
    /// A URL to fetch in a way of its own.
    Request(Arc<Request>),
    /// A task for its spider's program.
    Task(Arc<Task>),
}

/// A task that a spider has taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What names it.
    pub key: TaskKey,
    /// What it says. Its spider is the one of its crawl.
    pub new: NewTask,
}

impl Task {
    /// A task of `spider`.
    pub fn new(spider: &SpiderName, new: NewTask) -> Self {
        let new = NewTask { spider: None, ..new };
        Self { key: TaskKey::of(spider, &new), new }
    }

    /// What stores keep of it beside its record: the same JSON object as a line of `tasks.jsonl`.
    pub fn payload(&self) -> String {
        serde_json::to_string(&self.new).expect("text and numbers are JSON")
    }

    /// The task under `key` that a store has kept as this payload; `None` if that is none.
    pub fn stored(key: TaskKey, payload: &str) -> Option<Self> {
        NewTask::from_line(payload).ok().map(|new| Self { key, new })
    }
}

impl Work {
    /// A request for `url`; where it says no more than that, the URL.
    ///
    /// Fails if it cannot have a key ([`Request::new`]).
    pub fn of_request(url: CanonicalUrl, new: NewRequest) -> Result<Self, InvalidUrl> {
        match new.is_plain() {
            true => Ok(Self::Url(url)),
            false => Request::new(url, new).map(Self::from),
        }
    }

    /// What a record under `key` stands for, beside which a store has kept this payload; `None` if that cannot be read.
    pub fn stored(key: Key, payload: &str) -> Option<Self> {
        match key {
            Key::Url(url) => Some(Self::Url(url)),
            Key::Request(key) => Request::stored(key, payload).map(Self::from),
            Key::Task(key) => Task::stored(key, payload).map(Self::from),
        }
    }

    /// What stores keep of it beside its record; `None` of a URL, whose key says all.
    pub fn payload(&self) -> Option<String> {
        match self {
            Self::Url(_) => None,
            Self::Request(request) => Some(request.payload()),
            Self::Task(task) => Some(task.payload()),
        }
    }

    /// Whether there is such a thing.
    pub fn has_payload(&self) -> bool {
        !matches!(self, Self::Url(_))
    }

    /// How many bytes that has, about.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Url(_) => 0,
            Self::Request(request) => request.bytes(),
            Self::Task(task) => task.new.recipe.as_str().len(),
        }
    }

    /// What names its record.
    pub fn key(&self) -> Key {
        match self {
            Self::Url(url) => Key::Url(url.clone()),
            Self::Request(request) => Key::Request(request.key.clone()),
            Self::Task(task) => Key::Task(task.key.clone()),
        }
    }

    /// The text of that name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Url(url) => url.as_str(),
            Self::Request(request) => request.key.as_str(),
            Self::Task(task) => task.key.as_str(),
        }
    }

    /// The URL, if it is one and nothing else.
    pub fn url(&self) -> Option<&CanonicalUrl> {
        match self {
            Self::Url(url) => Some(url),
            Self::Request(_) | Self::Task(_) => None,
        }
    }

    /// The URL that is fetched for it, if one is.
    pub fn page(&self) -> Option<&CanonicalUrl> {
        match self {
            Self::Url(url) => Some(url),
            Self::Request(request) => Some(&request.url),
            Self::Task(_) => None,
        }
    }

    /// How urgent it is; 0 where it does not say so.
    pub fn priority(&self) -> Priority {
        match self {
            Self::Url(_) => Priority::default(),
            Self::Request(request) => request.new.priority,
            Self::Task(task) => task.new.priority,
        }
    }

    /// How often it is tried again, if it says so itself.
    pub fn retries(&self) -> Option<u32> {
        match self {
            Self::Url(_) => None,
            Self::Request(request) => request.new.retries,
            Self::Task(task) => task.new.retries,
        }
    }

    /// The request, if it is one.
    pub fn request(&self) -> Option<&Arc<Request>> {
        match self {
            Self::Request(request) => Some(request),
            Self::Url(_) | Self::Task(_) => None,
        }
    }

    /// The task, if it is one.
    pub fn task(&self) -> Option<&Arc<Task>> {
        match self {
            Self::Url(_) | Self::Request(_) => None,
            Self::Task(task) => Some(task),
        }
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
