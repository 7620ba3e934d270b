//! Values of TOML, and the mistakes in them, as the readers of settings and of spider files name both.

use std::fmt::Display;

use toml::de::{DeInteger, DeTable, DeValue};

use crate::mistake::{Mistake, Places};
use crate::nearest::nearest;
use crate::text::printable;

/// Maximum length of a value that is repeated in a mistake.
const MAX_SHOWN: usize = 60;

/// Parses a file.
pub(crate) fn parse<'a>(text: &'a str, places: &Places<'_>) -> Result<DeTable<'a>, Mistake> {
    DeTable::parse(text).map(toml::Spanned::into_inner).map_err(|error| Mistake {
        place: Some(places.place(&error.span().unwrap_or(0..0))),
        what: error.message().to_owned(),
    })
}

/// Returns the number; `None` if it is too large.
pub(crate) fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Returns the type of a value, for people.
pub(crate) fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Returns the mistake of a value of another type than `wanted`.
pub(crate) fn not_a(wanted: impl Display, found: &str) -> String {
    format!("{wanted} is wanted, not {found}")
}

/// Returns the mistake of a key that no table of this kind has. `hint` is from [`nearest`].
pub(crate) fn no_key(path: &str, hint: &str) -> String {
    format!("there is no key `{}`{hint}", printable(path, 2 * MAX_SHOWN))
}

/// Returns the mistake of a text that is none of the `known` ones.
pub(crate) fn no_choice<'a>(text: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    format!("there is no `{}`{}", printable(text, MAX_SHOWN), nearest(text, known))
}
