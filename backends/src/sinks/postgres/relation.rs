//! A table in the form that statements need.

use std::borrow::Cow;

use super::cell::Type;

/// A table with the key column `id`. Of two rows with one id it keeps the later one.
pub(crate) struct Relation<'a> {
    pub(crate) name: Cow<'a, str>,
    /// The column that decides which of two rows is the later one.
    pub(crate) latest_by: &'static str,
    /// The columns, each with its type.
    pub(crate) columns: Cow<'a, [(&'a str, Type)]>,
}
