//! A form with one field for each argument of a spider.

use std::collections::BTreeMap;

use crate::answers::Argument;
use crate::shown::Text;

/// The prefix of an argument's field name.
const PREFIX: &str = "arg.";

/// The fields of a form without another meaning.
pub(crate) type Given = BTreeMap<String, String>;

/// Returns the arguments that have a value, by name.
pub(crate) fn named(given: &Given) -> impl Iterator<Item = (&str, &str)> {
    let fields = given.iter().filter_map(|(field, value)| Some((field.strip_prefix(PREFIX)?, value.trim())));
    fields.filter(|(_, value)| !value.is_empty())
}

/// Returns the value of an argument; empty if it has none.
pub(crate) fn value(given: &Given, name: &str) -> Text {
    given.get(&format!("{PREFIX}{name}")).map_or("", String::as_str).into()
}

impl Argument {
    /// The name of its field.
    pub(crate) fn field(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }
}
