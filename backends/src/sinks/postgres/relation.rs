//! A table in the form that statements need.

use std::borrow::Cow;

use super::cell::Type;

/// The column with the time when the content of its row last changed.
pub(crate) const CHANGED_AT: &str = "changed_at";

/// A table with the key column `id`. Of two rows with one id it keeps the later one.
pub(crate) struct Relation<'a> {
    pub(crate) name: Cow<'a, str>,
    /// The column that decides which of two rows is the later one.
    pub(crate) latest_by: &'static str,
    /// The columns, each with its type.
    pub(crate) columns: Cow<'a, [(&'a str, Type)]>,
    /// The columns whose change sets [`CHANGED_AT`]; `None` if the table has no such column.
    pub(crate) content: Option<Vec<&'a str>>,
}
