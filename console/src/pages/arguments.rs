//! The arguments of a spider, in a form that has a field for each.

use std::collections::BTreeMap;

use crate::answers::Argument;
use crate::shown::Text;

/// What the name of an argument's field begins with.
const PREFIX: &str = "arg.";

/// What the fields of a form say that have no other meaning.
pub(crate) type Given = BTreeMap<String, String>;

/// The arguments that were given a value, by name.
pub(crate) fn named(given: &Given) -> impl Iterator<Item = (&str, &str)> {
    let fields = given.iter().filter_map(|(field, value)| Some((field.strip_prefix(PREFIX)?, value.trim())));
    fields.filter(|(_, value)| !value.is_empty())
}

/// The value that one was given; nothing if none was.
pub(crate) fn value(given: &Given, name: &str) -> Text {
    given.get(&format!("{PREFIX}{name}")).map_or("", String::as_str).into()
}

impl Argument {
    /// The name of its field.
    pub(crate) fn field(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }
}
