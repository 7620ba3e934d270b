//! One table of a file: its keys are read one after another, and the rest is noted.

use std::fmt::Display;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::given::Given;
use super::notes::Notes;
use crate::mistake::Place;
use crate::nearest::nearest;
use crate::text::printable;
use crate::toml_value;

/// A table, and the keys read so far.
pub(super) struct Section<'a> {
    notes: &'a Notes<'a>,
    /// The path of keys that leads to it; empty for the file itself.
    name: String,
    table: &'a DeTable<'a>,
    span: Range<usize>,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        notes: &'a Notes<'a>,
        name: String,
        table: &'a DeTable<'a>,
        span: Range<usize>,
    ) -> Self {
        Self { notes, name, table, span, known: Vec::new() }
    }

    /// Returns the table in a value.
    pub(super) fn from_given(given: &Given<'a>) -> Option<Self> {
        match given.value.get_ref() {
            DeValue::Table(table) => {
                Some(Self::new(given.notes, given.key.clone(), table, given.value.span()))
            }
            _ => given.not_a("a table"),
        }
    }

    /// Notes that the table as a whole is wrong.
    pub(super) fn wrong<T>(&self, what: impl Display) -> Option<T> {
        let colon = if self.name.is_empty() { "" } else { ": " };
        self.notes.wrong(self.notes.place(&self.span), format_args!("{}{colon}{what}", self.name));
        None
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Returns the value under `key`.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Given<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let value = self.table.get(key)?;
        Some(Given { notes: self.notes, key: self.path(key), value })
    }

    /// Reads the value under `key` with `read`.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Given<'a>) -> Option<T>,
    ) -> Option<T> {
        self.get(key).as_ref().and_then(read)
    }

    /// Like [`Section::read`], for a key that must be there.
    pub(super) fn need<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Given<'a>) -> Option<T>,
    ) -> Option<T> {
        match self.get(key) {
            Some(given) => read(&given),
            None => self.wrong(format_args!("`{key}` is missing")),
        }
    }

    /// Notes that `key` must not be there, if it is.
    pub(super) fn refuse(&mut self, key: &'static str, why: &str) {
        self.read(key, |given| given.wrong::<()>(why));
    }

    /// Reads the elements of a list under `key` that can be read; empty if the key is not there.
    pub(super) fn all<T>(&mut self, key: &'static str, read: impl FnMut(&Given<'a>) -> Option<T>) -> Vec<T> {
        self.read(key, |given| given.all(read)).unwrap_or_default()
    }

    /// Reads the table under `key`, if it is there.
    pub(super) fn within<T>(&mut self, key: &'static str, read: impl FnOnce(Section<'a>) -> T) -> Option<T> {
        self.read(key, |given| Self::from_given(given).map(read))
    }

    /// Whether the table has no keys.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Iterates over all entries in order, for a table whose keys are names: the name, its place, and its value.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, Place, Given<'a>)> {
        self.table.iter().map(|(key, value)| {
            let name = key.get_ref().to_string();
            let path = self.path(&printable(&name, 64));
            (name, self.notes.place(&key.span()), Given { notes: self.notes, key: path, value })
        })
    }

    /// Notes unknown keys: those that were never read.
    pub(super) fn end(self) {
        for (key, _) in self.table.iter().filter(|(key, _)| !self.known.contains(&key.get_ref().as_ref())) {
            let hint = nearest(key.get_ref(), self.known.iter().copied());
            let what = toml_value::no_key(&self.path(key.get_ref()), &hint);
            self.notes.wrong(self.notes.place(&key.span()), what);
        }
    }
}
