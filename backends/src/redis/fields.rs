//! The fields of a crawl's hash. One that holds what trawl does not write is an error that names it, so that its crawl stands
//! still: no default passes for what was written.

use std::collections::HashMap;
use std::str::FromStr;

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
        let told = format!(
            "redis: the field {name} of {key} holds `{text}`, which trawl does not write: set it right"
        );
        Error::new(ErrorKind::Corrupt, told)
    }
}
