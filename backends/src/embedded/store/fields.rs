//! The fields of rows. A value that trawl would not have written is an error that names the field; no default
//! replaces it.

use std::num::NonZeroU64;
use std::str::FromStr;

use rusqlite::types::ValueRef;
use rusqlite::{Row, RowIndex};
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

use crate::embedded::store::error::{Fault, Result};

/// Returns an instant in stored form, in ms since 1970, capped at SQLite's maximum.
pub(crate) fn sql_ms(instant: UnixMs) -> i64 {
    i64::try_from(instant.0).unwrap_or(i64::MAX)
}

/// The fields of one row.
pub(crate) struct Fields<'a, 'stmt> {
    row: &'a Row<'stmt>,
    of: &'static str,
    name: &'static str,
}

impl<'a, 'stmt> Fields<'a, 'stmt> {
    /// Creates the fields of a row of `of`, such as a crawl, with its name in the column `name`.
    pub(crate) fn new(row: &'a Row<'stmt>, of: &'static str, name: &'static str) -> Self {
        Self { row, of, name }
    }

    /// Returns a number.
    pub(crate) fn number<T: TryFrom<i64>>(&self, column: impl RowIndex) -> Result<T> {
        self.required(column, integer)
    }

    /// Returns a number, if there is one.
    pub(crate) fn optional_number<T: TryFrom<i64>>(&self, column: impl RowIndex) -> Result<Option<T>> {
        self.optional(column, integer)
    }

    /// Returns a number above zero, if there is one.
    pub(crate) fn limit(&self, column: impl RowIndex) -> Result<Option<NonZeroU64>> {
        self.optional(column, |value| integer(value).and_then(NonZeroU64::new))
    }

    /// Returns an instant.
    pub(crate) fn instant(&self, column: impl RowIndex) -> Result<UnixMs> {
        self.number(column).map(UnixMs)
    }

    /// Returns an instant, if there is one.
    pub(crate) fn optional_instant(&self, column: impl RowIndex) -> Result<Option<UnixMs>> {
        Ok(self.optional_number(column)?.map(UnixMs))
    }

    /// Parses a text.
    pub(crate) fn text<T: FromStr>(&self, column: impl RowIndex) -> Result<T> {
        self.required(column, parsed)
    }

    /// Parses a text, if there is one.
    pub(crate) fn optional_text<T: FromStr>(&self, column: impl RowIndex) -> Result<Option<T>> {
        self.optional(column, parsed)
    }

    fn required<T>(&self, column: impl RowIndex, read: impl FnOnce(ValueRef<'_>) -> Option<T>) -> Result<T> {
        read(self.row.get_ref(column)?).ok_or_else(|| self.unreadable(column))
    }

    fn optional<T>(
        &self,
        column: impl RowIndex,
        read: impl FnOnce(ValueRef<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.row.get_ref(column)? {
            ValueRef::Null => Ok(None),
            value => read(value).map(Some).ok_or_else(|| self.unreadable(column)),
        }
    }

    /// Returns the error for a column that cannot be read.
    pub(crate) fn unreadable(&self, column: impl RowIndex) -> Fault {
        let named = |column: usize| self.row.as_ref().column_name(column).unwrap_or("?").to_owned();
        let field = column.idx(self.row.as_ref()).map_or_else(|_| "?".to_owned(), named);
        unreadable(self.of, &self.shown(self.name), &field, &self.shown(column))
    }

    /// Returns the value of a column in a form for people.
    fn shown(&self, column: impl RowIndex) -> String {
        match self.row.get_ref(column) {
            Ok(ValueRef::Integer(number)) => number.to_string(),
            Ok(ValueRef::Real(number)) => number.to_string(),
            Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
                printable(&String::from_utf8_lossy(bytes), 512)
            }
            Ok(ValueRef::Null) | Err(_) => String::new(),
        }
    }
}

/// Returns the error for a field of `of`, named `name`, with a value that cannot be read.
pub(crate) fn unreadable(of: &str, name: &str, field: &str, held: &str) -> Fault {
    let message = format!("the field {field} of {of} {name} holds `{held}`");
    Fault::corrupt(format_args!(
        "{message}: trawl writes nothing of that kind: has another program written there?"
    ))
}

fn integer<T: TryFrom<i64>>(value: ValueRef<'_>) -> Option<T> {
    value.as_i64().ok()?.try_into().ok()
}

fn parsed<T: FromStr>(value: ValueRef<'_>) -> Option<T> {
    value.as_str().ok()?.parse().ok()
}
