//! Regular expressions, and paths into JSON.

use super::given::Given;
use super::section::Section;
use crate::mistake::Sited;
use crate::spider::Selector;
use crate::spider::pattern::Untaken;
use crate::text::printable;

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

/// Reads a selector: a text, a path into JSON, or a table of another language.
pub(super) fn selector(given: &Given<'_>) -> Option<Selector> {
    if given.is_table() {
        return named(Section::from_given(given)?);
    }
    let text = css(given)?;
    if text.value.starts_with(['/', '$']) {
        path(given).map(Selector::Text)
    } else {
        Some(Selector::Text(text))
    }
}

/// Reads a CSS selector, or a path into JSON.
pub(super) fn css(given: &Given<'_>) -> Option<Sited<String>> {
    let text = given.words()?;
    if !["//", "./", "(/"].iter().any(|start| text.value.trim_start().starts_with(start)) {
        return Some(text);
    }
    given.wrong(format_args!("looks like XPath: write {{ xpath = '{}' }}", printable(&text.value, 60)))
}

/// Reads a selector of elements: CSS, or a table of another language.
pub(super) fn elements(given: &Given<'_>) -> Option<Selector> {
    if given.is_table() { selector(given) } else { css(given).map(Selector::Text) }
}

/// Reads the table of a selector.
fn named(mut section: Section<'_>) -> Option<Selector> {
    let (xpath, script, path) = (section.get("xpath"), section.get("script"), section.get("path"));
    let selector = match (&xpath, &script) {
        (Some(xpath), None) => {
            section.refuse("path", "is for `script` alone");
            xpath.words().map(Selector::XPath)
        }
        (None, Some(script)) => {
            let path = if let Some(path) = &path { Some(self::path(path)?) } else { None };
            script.words().map(|name| Selector::Script(name, path))
        }
        (None, None) if !section.is_empty() => None,
        _ => {
            section.wrong("a text is wanted, or one of `{ xpath = ... }` and `{ script = ..., path = ... }`")
        }
    };
    section.end();
    selector
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
