//! Values that may come from the environment, and that no mistake repeats.

use super::given::Given;
use super::section::Section;
use crate::spider::Secret;

/// A text, or `{ env = "NAME" }`: what the variable says.
pub(super) fn secret(given: &Given<'_>) -> Option<Secret> {
    if !given.is_table() {
        return Some(Secret::new(given.text()?.value));
    }
    let mut section = Section::of(given)?;
    let name = section.need("env", Given::words);
    section.end();
    let name = name?;
    if name.value.contains(['=', '\0']) {
        return given.wrong("no environment variable has `=` in its name");
    }
    given.notes.variable(name.place?, &name.value).map(Secret::new)
}
