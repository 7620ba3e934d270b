//! `[fields]` and `[[items]]`: what is extracted.

use std::collections::HashSet;

use super::given::Given;
use super::nearest::listed;
use super::patterns::{path, regex, selector_or_path};
use super::section::Section;
use crate::spider::{Field, From, ItemRule, Kind, PageField, Sited};

/// The longest name, in bytes: PostgreSQL's of a column.
const MAX_NAME: usize = 63;

/// The keys that say where a field's values come from.
const SOURCES: [&str; 9] = ["css", "json", "header", "meta", "json_ld", "microdata", "table", "page", "each"];

const KINDS: [(&str, Kind); 8] = [
    ("text", Kind::Text),
    ("number", Kind::Number),
    ("integer", Kind::Integer),
    ("boolean", Kind::Boolean),
    ("date", Kind::Date),
    ("url", Kind::Url),
    ("html", Kind::Html),
    ("json", Kind::Json),
];

/// `[[items]]`
pub(super) fn kinds(given: &Given<'_>) -> Vec<ItemRule> {
    let Some(all) = given.list() else { return Vec::new() };
    if all.is_empty() {
        given.wrong::<()>("names no kind of item");
    }
    let mut names = HashSet::new();
    let several = all.len() > 1;
    let mut kind = |given: &Given<'_>| {
        let mut section = given.section()?;
        let named = section.get("name");
        let name = named.as_ref().and_then(Given::text).map(|name| name.value);
        match (&named, &name) {
            (Some(named), Some(name)) if !is_name(name) => named.wrong(NO_NAME),
            (Some(named), Some(name)) if !names.insert(name.clone()) => {
                named.wrong(format_args!("there are two kinds of item with the name `{name}`"))
            }
            (None, _) if several => section.wrong("of several kinds of item, each needs a `name`"),
            _ => Some(()),
        };
        let each = section.read("each", selector_or_path);
        let fields = section.need("fields", |given| given.section().map(fields)).unwrap_or_default();
        section.end();
        Some(ItemRule { name, each, fields })
    };
    all.iter().filter_map(&mut kind).collect()
}

/// A table of fields.
pub(super) fn fields(section: Section<'_>) -> Vec<(String, Field)> {
    let mut fields = Vec::new();
    let mut is_empty = true;
    for (name, given) in section.entries() {
        is_empty = false;
        if !is_name(&name.value) {
            given.notes.wrong(name.place.unwrap_or_default(), format_args!("{}: {NO_NAME}", given.key));
        }
        if let Some(field) = field(&given) {
            fields.push((name.value, field));
        }
    }
    if is_empty {
        section.wrong::<()>("has no field");
    }
    fields
}

const NO_NAME: &str = "a name has 1 to 63 bytes, no white space, and nothing that does not show";

fn is_name(name: &str) -> bool {
    let is_bad = |c: char| c.is_whitespace() || crate::text::is_harmful(c);
    (1..=MAX_NAME).contains(&name.len()) && !name.contains(is_bad)
}

/// A text, short for `css`, or a table.
fn field(given: &Given<'_>) -> Option<Field> {
    if !given.is_table() {
        return Some(Field::of(From::Css(given.words()?)));
    }
    let mut section = given.section()?;
    let from = source(&mut section);
    let mut field = Field {
        list: section.read("list", Given::flag).unwrap_or_default(),
        kind: section.read("type", |given| given.one_of(&KINDS)).unwrap_or_default(),
        regex: section.read("regex", regex),
        format: section.read("format", Given::words),
        default: section.read("default", Given::json),
        required: section.read("required", Given::flag).unwrap_or_default(),
        // Put right below: without a source there is no field.
        ..Field::of(From::Page(PageField::Url))
    };
    if field.required && field.default.is_some() {
        section.read("required", |given| given.wrong::<()>("a field with a `default` is never missing"));
    }
    if field.format.is_some() && field.kind != Kind::Date {
        section.read("format", |given| given.wrong::<()>("is for `type = \"date\"` alone"));
    }
    if let Some(From::Each(..)) = from {
        for key in ["type", "regex"] {
            section.read(key, |given| {
                given.wrong::<()>("is for values, not for `each`: put it into its `fields`")
            });
        }
    }
    section.end();
    field.from = from?;
    Some(field)
}

/// The one source that a field has.
fn source(section: &mut Section<'_>) -> Option<From> {
    let mut given: Vec<(&str, Given<'_>)> =
        SOURCES.into_iter().filter_map(|key| Some((key, section.get(key)?))).collect();
    let (inner_path, inner_fields) = (section.get("path"), section.get("fields"));
    given.sort_by_key(|(_, given)| given.place());
    let mut given = given.into_iter();
    let Some((key, value)) = given.next() else {
        return section.wrong(format_args!(
            "does not say where it comes from: give one of {}",
            listed(SOURCES.into_iter())
        ));
    };
    for (_, value) in given {
        value.wrong::<()>(format_args!("a field has one source, and this one has `{key}` already"));
    }
    if let Some(path) = inner_path.as_ref().filter(|_| !matches!(key, "json_ld" | "microdata")) {
        path.wrong::<()>("is for `json_ld` and `microdata` alone");
    }
    if let Some(fields) = inner_fields.as_ref().filter(|_| key != "each") {
        fields.wrong::<()>("are for `each` alone");
    }
    let within = || match &inner_path {
        Some(given) => path(given).map(Some),
        None => Some(None),
    };
    Some(match key {
        "css" => From::Css(value.words()?),
        "json" => From::Json(path(&value)?),
        "header" => From::Header(lower(value.words()?)),
        "meta" => From::Meta(value.words()?),
        "json_ld" => From::JsonLd(value.words()?, within()?),
        "microdata" => From::Microdata(value.words()?, within()?),
        "table" => From::Table(value.words()?),
        "page" => From::Page(value.one_of(&PageField::ALL.map(|field| (field.as_str(), field)))?),
        _ => {
            let Some(inner) = inner_fields else {
                return section.wrong("`each` needs `fields`, which are looked for inside it");
            };
            let (each, fields) = (selector_or_path(&value), inner.section().map(fields));
            From::Each(each?, fields?)
        }
    })
}

/// Headers are kept by their names in lower case.
fn lower(name: Sited<String>) -> Sited<String> {
    Sited { value: name.value.to_ascii_lowercase(), ..name }
}
