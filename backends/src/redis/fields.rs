//! The fields of the hash of a crawl or a job. A value that trawl would not have written is an error that names
//! the field, and its crawl stops; no default replaces it.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use trawl_common::ports::{Error, ErrorKind, Result};

use crate::redis::recovery::corrupt::shown;

/// The stored fields of a key.
pub(crate) struct Fields {
    key: String,
    stored: HashMap<String, String>,
}

impl Fields {
    pub(crate) fn new(key: impl Into<String>, stored: HashMap<String, String>) -> Self {
        Self { key: key.into(), stored }
    }

    /// Parses the field; `None` if there is none.
    pub(crate) fn read<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        let read = |text: &String| text.parse().map_err(|_| self.unreadable(name, text));
        self.stored.get(name).map(read).transpose()
    }

    /// Parses a field that trawl always writes.
    pub(crate) fn required<T: FromStr>(&self, name: &str) -> Result<T> {
        self.read(name)?.ok_or_else(|| self.nonsense(&format_args!("no {name}")))
    }

    /// Parses a field as JSON that trawl always writes.
    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let text: String = self.required(name)?;
        serde_json::from_str(&text).map_err(|_| self.unreadable(name, &text))
    }

    /// Returns the error for fields that trawl would not have written together.
    pub(crate) fn nonsense(&self, what: &dyn fmt::Display) -> Error {
        let message = format!("redis: {} holds {what}, which trawl does not write: set it right", self.key);
        Error::new(ErrorKind::Corrupt, message)
    }

    /// Returns a counter: zero if there is none, or if it is negative because a server lost its last second.
    pub(crate) fn count(&self, name: &str) -> Result<u64> {
        Ok(self.read::<i64>(name)?.map_or(0, |count| count.max(0) as u64))
    }

    /// Iterates over the names of all fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
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
