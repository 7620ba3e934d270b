//! A table as statements see it.

use std::borrow::Cow;

use super::cell::Type;

/// A table whose key is the column `id`. Of two rows with one id it keeps the later one.
pub(crate) struct Relation<'a> {
    pub(crate) name: Cow<'a, str>,
    /// The column that says which of two rows is the later one.
    pub(crate) latest_by: &'static str,
    /// Every column, with its type.
    pub(crate) columns: Cow<'a, [(&'a str, Type)]>,
}
