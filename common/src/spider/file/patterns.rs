//! Regular expressions, and paths into JSON.

use super::given::Given;
use crate::mistake::Sited;
use crate::spider::pattern::Untaken;

/// Reads a regular expression.
pub(super) fn regex(given: &Given<'_>) -> Option<Sited<String>> {
    let text = given.words()?;
    match given.notes.take_pattern(&text.value) {
        Ok(()) => Some(text),
        Err(Untaken::Wrong(what)) => given.wrong(what),
        Err(Untaken::TooMany) => None,
    }
}

/// Reads a path into JSON: a JSON Pointer (RFC 6901), or a text that begins like a JSONPath.
pub(super) fn path(given: &Given<'_>) -> Option<Sited<String>> {
    let text = given.text()?;
    match text.value.chars().next() {
        None | Some('$') => Some(text),
        Some('/') => pointer(given, text),
        Some(_) => given.wrong("is neither a JSON Pointer, as `/price`, nor a JSONPath, as `$.price`"),
    }
}

/// Reads a selector, or for a JSON response a path.
pub(super) fn selector_or_path(given: &Given<'_>) -> Option<Sited<String>> {
    let text = given.words()?;
    if text.value.starts_with(['/', '$']) { path(given) } else { Some(text) }
}

fn pointer(given: &Given<'_>, text: Sited<String>) -> Option<Sited<String>> {
    let mut after_tildes = text.value.split('~').skip(1);
    if after_tildes.all(|after| after.starts_with(['0', '1'])) {
        Some(text)
    } else {
        given.wrong("is not a JSON Pointer: write `~0` for a tilde, and `~1` for a slash in a name")
    }
}

/// Reads one value, or a list of values.
pub(super) fn one_or_more<T>(given: &Given<'_>, read: impl Fn(&Given<'_>) -> Option<T>) -> Option<Vec<T>> {
    match given.is_list() {
        true => given.all(read),
        false => read(given).map(|one| vec![one]),
    }
}
