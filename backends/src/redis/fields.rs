//! The fields of the hash of a crawl or a job. One that holds what trawl does not write is an error that names it, so that its crawl
//! stands still: no default passes for what was written.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use trawl_common::ports::{Error, ErrorKind, Result};

use super::corrupt::shown;

/// Fields as they are stored, and of which key.
pub(super) struct Fields {
    key: String,
    stored: HashMap<String, String>,
}

impl Fields {
    pub(super) fn new(key: impl Into<String>, stored: HashMap<String, String>) -> Self {
        Self { key: key.into(), stored }
    }

    /// What the field holds; `None` if there is none.
    pub(super) fn read<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        let read = |text: &String| text.parse().map_err(|_| self.unreadable(name, text));
        self.stored.get(name).map(read).transpose()
    }

    /// What the field holds, which trawl always writes.
    pub(super) fn required<T: FromStr>(&self, name: &str) -> Result<T> {
        self.read(name)?.ok_or_else(|| self.nonsense(&format_args!("no {name}")))
    }

    /// What the field holds as JSON, which trawl always writes.
    pub(super) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let text: String = self.required(name)?;
        serde_json::from_str(&text).map_err(|_| self.unreadable(name, &text))
    }

    /// That the fields together say what trawl does not write.
    pub(super) fn nonsense(&self, what: &dyn fmt::Display) -> Error {
        let message = format!("redis: {} holds {what}, which trawl does not write: set it right", self.key);
        Error::new(ErrorKind::Corrupt, message)
    }

    /// A counter: zero if there is none, or if a server that lost its last second counted it down below that.
    pub(super) fn count(&self, name: &str) -> Result<u64> {
        Ok(self.read::<i64>(name)?.map_or(0, |count| count.max(0) as u64))
    }

    /// The names of all fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.stored.keys().map(String::as_str)
    }

    fn unreadable(&self, name: &str, text: &str) -> Error {
        let (key, text) = (&self.key, shown(text.as_bytes()));
        let what = format!(
            "redis: the field {name} of {key} holds `{text}`, which trawl does not write: set it right"
        );
        Error::new(ErrorKind::Corrupt, what)
    }
}
