//! An entry of a producer's list.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::request::NewRequest;
use crate::task::NewTask;
use crate::text::printable;
use crate::web::url::CanonicalUrl;

/// A task, or a URL to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListEntry {
    /// A task, written as a JSON string or an object with `recipe`.
    Task(NewTask),
    /// A request, written as a bare URL or an object with `url`.
    Request(NewRequest),
}

impl ListEntry {
    /// Parses a line. A line that begins like JSON is read as JSON, as no URL begins so; any other is taken for a
    /// URL, which may turn out to be invalid.
    ///
    /// Fails with a description if it is no entry.
    pub fn from_line(line: &str) -> Result<Self, String> {
        if !line.starts_with(['{', '"', '[']) {
            return Ok(Self::Request(NewRequest::get(line)));
        }
        let value: Value = serde_json::from_str(line).map_err(|error| {
            let error = printable(&error.to_string(), 200);
            format!("not JSON: {error}; a line is a URL, a request (an object with `url`) or a task")
        })?;
        match &value {
            Value::Object(object) if object.contains_key("url") => {
                NewRequest::try_from(value).map(Self::Request).map_err(|error| error.to_string())
            }
            Value::Object(object) if !object.contains_key("recipe") => {
                Err("an object with `url` is a request, and one with `recipe` a task: this has neither"
                    .to_owned())
            }
            _ => NewTask::try_from(value).map(Self::Task).map_err(|error| error.to_string()),
        }
    }

    /// Returns its stored size in bytes.
    pub fn bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |json| json.len())
    }

    /// Returns the request, if it is one.
    pub fn request(&self) -> Option<&NewRequest> {
        match self {
            Self::Request(request) => Some(request),
            Self::Task(_) => None,
        }
    }
}

impl From<NewRequest> for ListEntry {
    fn from(request: NewRequest) -> Self {
        Self::Request(request)
    }
}

impl From<CanonicalUrl> for ListEntry {
    fn from(url: CanonicalUrl) -> Self {
        Self::Request(url.into())
    }
}

/// The stored form of a job's entries: text is a URL, and a task is always an object. A version of trawl without
/// tasks refuses to read one.
impl Serialize for ListEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Task(task) => task.serialize(serializer),
            Self::Request(request) => request.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ListEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match value.get("recipe") {
            Some(_) => NewTask::try_from(value).map(Self::Task).map_err(|error| error.to_string()),
            None => NewRequest::try_from(value).map(Self::Request).map_err(|error| error.to_string()),
        };
        read.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_url_a_request_or_a_task() {
        let url = ListEntry::from_line("http://a.example/?q={1}").unwrap();
        assert_eq!(url, ListEntry::Request(NewRequest::get("http://a.example/?q={1}")));
        let request = ListEntry::from_line(r#"{"url": "http://a.example/", "body": "x"}"#).unwrap();
        assert!(matches!(request, ListEntry::Request(new) if !new.is_plain()));
        for task in [r#""http://a.example/""#, r#"{"recipe": "x"}"#] {
            assert!(matches!(ListEntry::from_line(task), Ok(ListEntry::Task(_))), "{task}");
        }
    }

    #[test]
    fn an_entry_that_is_stored_is_read_as_it_was() {
        for line in ["http://a.example/", r#""http://a.example/""#, r#"{"url": "/", "body": "x"}"#] {
            let entry = ListEntry::from_line(line).unwrap();
            let stored = serde_json::to_value(&entry).unwrap();
            assert_eq!(serde_json::from_value::<ListEntry>(stored.clone()).unwrap(), entry, "{line}");
            let for_older = NewRequest::try_from(stored);
            assert_eq!(
                for_older.is_ok(),
                entry.request().is_some(),
                "what knows no tasks takes none for a URL"
            );
        }
    }

    #[test]
    fn what_is_none_of_them_has_an_error_that_says_what_is_wrong() {
        for (line, expected) in [
            (r#"{"url": "/""#, "not JSON: EOF"),
            (r#"{"url": "/", "metod": "PUT"}"#, "a request has no `metod`: did you mean `method`?"),
            (r#"{"recipe": 7}"#, "`recipe` is text, not a number"),
            (r#"{"id": 7}"#, "this has neither"),
            ("[1]", "not a list"),
        ] {
            let error = ListEntry::from_line(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
