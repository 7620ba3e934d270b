//! Values that may come from the environment, and that no mistake repeats.

use super::given::Given;
use super::placeholders;
use super::section::Section;
use crate::spider::{Place, Secret};

/// A text, or `{ env = "NAME" }`: what the variable says.
pub(super) fn secret(given: &Given<'_>) -> Option<Secret> {
    if !given.is_table() {
        return Some(Secret::new(given.text()?.value));
    }
    let mut section = Section::of(given)?;
    let name = section.need("env", variable);
    section.end();
    let (place, name) = name?;
    given.notes.variable(place, name).map(Secret::new)
}

/// The name of an environment variable. No argument may choose it.
pub(super) fn variable<'a>(given: &Given<'a>) -> Option<(Place, &'a str)> {
    let name = given.verbatim()?;
    if placeholders::is_in(name) {
        given.wrong("no argument may say which environment variable is read")
    } else if name.trim().is_empty() {
        given.wrong("must not be empty")
    } else if name.contains(['=', '\0']) {
        given.wrong("no environment variable has `=` in its name")
    } else {
        Some((given.place(), name))
    }
}
