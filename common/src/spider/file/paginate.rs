//! `[[paginate]]`

use std::num::NonZeroU32;

use super::fields;
use super::given::Given;
use super::patterns;
use super::section::Section;
use crate::spider::{PageKind, Paginate, PaginateBy, Parameter};

/// The keys of which each section has one.
const WAYS: [&str; 4] = ["next", "number", "offset", "cursor"];

/// Reads one section. `kinds` are the kinds of pages.
pub(super) fn paginate(given: &Given<'_>, kinds: &[PageKind]) -> Option<Paginate> {
    let mut section = Section::from_given(given)?;
    let page =
        section.read("page", |given| patterns::one_or_more(given, |given| given.words())).unwrap_or_default();
    for name in &page {
        if kinds.iter().all(|kind| kind.name.value != name.value) {
            let known = kinds.iter().map(|kind| kind.name.value.as_str());
            given.no_such(name, format_args!("{}.page: there is no [[page]]", given.key), known);
        }
    }
    let by = way(&mut section);
    let entries = section.read("entries", patterns::selector);
    let most = section.read("most", |given| given.whole(1)).and_then(NonZeroU32::new);
    section.end();
    Some(Paginate { page, by: by?, entries, most: most.unwrap_or(Paginate::DEFAULT_MAX_PAGES) })
}

fn way(section: &mut Section<'_>) -> Option<PaginateBy> {
    let given: Vec<_> = WAYS.into_iter().filter_map(|key| Some((key, section.get(key)?))).collect();
    let [(key, value)] = given.as_slice() else {
        // Known keys all the same.
        let _ = (section.get("first"), section.get("step"), section.get("to"));
        return section
            .wrong("says how the next page is reached by one of `next`, `number`, `offset` and `cursor`");
    };
    if *key != "cursor" {
        section.refuse("to", "is for `cursor` alone");
    }
    if !matches!(*key, "number" | "offset") {
        section.refuse("first", "is for `number` and `offset` alone");
        section.refuse("step", "is for `number` and `offset` alone");
    }
    match *key {
        "next" if value.has_key("header") => {
            let mut inner = Section::from_given(value)?;
            let relation = inner.need("header", Given::words);
            inner.end();
            Some(PaginateBy::Link(relation?.value))
        }
        "next" => patterns::selector(value).map(PaginateBy::Next),
        "cursor" => {
            let to = section.need("to", parameter);
            let from = Box::new(fields::field(value)?);
            Some(PaginateBy::Cursor { to: to?, from })
        }
        key => {
            let (first, step) = if key == "number" { (1, NonZeroU32::new(1)) } else { (0, None) };
            let first = section.read("first", |given| given.whole(0)).unwrap_or(first);
            let given = section.get("step");
            let step = given.as_ref().map_or(step, |given| given.whole(1).and_then(NonZeroU32::new));
            if given.is_none() && step.is_none() {
                section.wrong::<()>("`step` is missing: how many entries a page has");
            }
            Some(PaginateBy::Count { to: parameter(value)?, first, step: step? })
        }
    }
}

/// Reads the name of a parameter, or a JSON Pointer into the body.
fn parameter(given: &Given<'_>) -> Option<Parameter> {
    let text = given.words()?;
    if text.value.starts_with('/') {
        patterns::path(given).map(|path| Parameter::Json(path.value))
    } else {
        Some(Parameter::Named(text.value))
    }
}
