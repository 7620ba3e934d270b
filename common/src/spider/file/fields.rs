//! `[fields]` and `[[items]]`: the fields to extract.

use std::collections::HashSet;

use toml::de::DeValue;

use super::given::Given;
use super::patterns::{css, elements, path, regex, selector};
use super::section::Section;
use super::transform;
use crate::mistake::Sited;
use crate::nearest::listed;
use crate::schedule::timezone;
use crate::spider::{Conversion, Field, FieldSource, ItemRule, Kind, PageField, Required, Transform};

/// Maximum length of a name in bytes, that of a PostgreSQL column.
const MAX_NAME: usize = 63;

/// The keys for the source of a field's values.
const SOURCES: [&str; 13] = [
    "css",
    "xpath",
    "json",
    "jmespath",
    "script",
    "header",
    "meta",
    "json_ld",
    "microdata",
    "table",
    "page",
    "carried",
    "each",
];

const MARKS: [(&str, char); 2] = [(".", '.'), (",", ',')];

const REQUIRED: [(&str, Required); 3] =
    [("warn", Required::Warn), ("retry", Required::Retry), ("fail", Required::Fail)];

/// `[[items]]`, whose names are none of `names`, to which they are added.
pub(super) fn kinds(given: &Given<'_>, names: &mut HashSet<String>) -> Vec<ItemRule> {
    let Some(all) = given.list() else { return Vec::new() };
    if all.is_empty() {
        given.wrong::<()>("names no kind of item");
    }
    let several = all.len() > 1;
    let mut kind = |given: &Given<'_>| {
        let mut section = Section::from_given(given)?;
        let name = kind_name(&mut section, several, names);
        let each = section.read("each", selector);
        let fields =
            section.need("fields", |given| Section::from_given(given).map(fields)).unwrap_or_default();
        section.end();
        Some(ItemRule { name, each, fields, page: None })
    };
    all.iter().filter_map(&mut kind).collect()
}

/// Reads the name of one kind of item, and adds it to `names`, which must not have it yet.
fn kind_name(section: &mut Section<'_>, several: bool, names: &mut HashSet<String>) -> Option<String> {
    let Some(given) = section.get("name") else {
        return if several { section.wrong("of several kinds of item, each needs a `name`") } else { None };
    };
    let name = given.text()?.value;
    if !is_name(&name) {
        return given.wrong(NO_NAME);
    }
    if !names.insert(name.clone()) {
        return given.wrong(format_args!("there are two kinds of item with the name `{name}`"));
    }
    Some(name)
}

/// Reads a table of fields.
pub(super) fn fields(section: Section<'_>) -> Vec<(String, Field)> {
    let mut fields = Vec::new();
    let mut is_empty = true;
    for (name, place, given) in section.entries() {
        is_empty = false;
        if !is_name(&name) {
            given.notes.wrong(place, format_args!("{}: {NO_NAME}", given.key));
        }
        if let Some(field) = field(&given) {
            fields.push((name, field));
        }
    }
    if is_empty {
        section.wrong::<()>("has no field");
    }
    fields
}

pub(super) const NO_NAME: &str = "a name has 1 to 63 bytes, no white space, and nothing that does not show";

pub(super) fn is_name(name: &str) -> bool {
    let is_bad = |c: char| c.is_whitespace() || crate::text::is_harmful(c);
    (1..=MAX_NAME).contains(&name.len()) && !name.contains(is_bad)
}

/// Reads a field: a text, short for `css`, or a table.
pub(super) fn field(given: &Given<'_>) -> Option<Field> {
    if !given.is_table() {
        return Some(Field::new(FieldSource::Css(css(given)?)));
    }
    let mut section = Section::from_given(given)?;
    let from = source(&mut section);
    let list = section.read("list", Given::flag).unwrap_or_default();
    let transform = section.read("transform", transform::steps).unwrap_or_default();
    // As the last step makes them.
    let made = transform.iter().rev().find_map(|step| match step {
        Transform::Read(conversion) => Some(Some(conversion.kind)),
        Transform::Slice(..) => None,
        _ => Some(None),
    });
    let kind = section.read("type", Given::variant);
    let kind = kind.or(made.flatten()).unwrap_or_default();
    let Conversion { format, timezone, decimal, truth, falsehood, .. } = conversion(&mut section, kind);
    let regex = section.read("regex", regex);
    if !transform.is_empty() {
        section.refuse("regex", "is a step as well: put it into `transform`");
    }
    let whitespace = section.read("whitespace", Given::variant);
    let default = section.read("default", Given::json);
    let required = section.read("required", required).unwrap_or_default();
    if required != Required::No && default.is_some() {
        section.refuse("required", "a field with a `default` is never missing");
    }
    if kind != Kind::Text {
        section.refuse("whitespace", "is for `type = \"text\"` alone");
    }
    if let Some(FieldSource::Each(..)) = from {
        section.refuse("type", "is for values, not for `each`: put it into its `fields`");
        section.refuse("regex", "is for values, not for `each`: put it into its `fields`");
        section.refuse("transform", "is for values, not for `each`: put it into its `fields`");
        section.refuse("whitespace", "is for values, not for `each`: put it into its `fields`");
    }
    section.end();
    Some(Field {
        from: from?,
        list,
        kind,
        regex,
        format,
        timezone,
        decimal,
        truth,
        falsehood,
        whitespace,
        transform,
        default,
        required,
    })
}

/// Reads how texts become values of a type.
pub(super) fn conversion(section: &mut Section<'_>, kind: Kind) -> Conversion {
    let conversion = Conversion {
        kind,
        format: section.read("format", Given::words),
        timezone: section.read("timezone", |given| {
            timezone(&given.words()?.value).map_or_else(|error| given.wrong(error), Some)
        }),
        decimal: section.read("decimal", |given| given.one_of(&MARKS)),
        truth: section.read("true", texts).unwrap_or_default(),
        falsehood: section.read("false", texts).unwrap_or_default(),
    };
    if kind != Kind::Date {
        section.refuse("format", "is for `type = \"date\"` alone");
        section.refuse("timezone", "is for `type = \"date\"` alone");
    }
    if !matches!(kind, Kind::Number | Kind::Integer) {
        section.refuse("decimal", "is for `type = \"number\"` and `\"integer\"` alone");
    }
    if kind != Kind::Boolean {
        section.refuse("true", "is for `type = \"boolean\"` alone");
        section.refuse("false", "is for `type = \"boolean\"` alone");
    }
    conversion
}

/// Reads a text, or a list of texts.
fn texts(given: &Given<'_>) -> Option<Vec<String>> {
    let text = |given: &Given<'_>| Some(given.words()?.value);
    match given.value.get_ref() {
        DeValue::Array(_) => given.all(text),
        _ => text(given).map(|text| vec![text]),
    }
}

/// Reads `required`. `true` means `warn`, for compatibility.
fn required(given: &Given<'_>) -> Option<Required> {
    match given.value.get_ref() {
        DeValue::Boolean(true) => Some(Required::Warn),
        DeValue::Boolean(false) => Some(Required::No),
        DeValue::String(_) => given.one_of(&REQUIRED),
        _ => given.wrong("true, false, \"warn\", \"retry\" or \"fail\" is wanted"),
    }
}

/// Reads the only source of a field.
fn source(section: &mut Section<'_>) -> Option<FieldSource> {
    let (key, value) = sole_source(section)?;
    if !matches!(key, "json_ld" | "microdata" | "script") {
        section.refuse("path", "is for `json_ld`, `microdata` and `script` alone");
    }
    if key != "each" {
        section.refuse("fields", "are for `each` alone");
    }
    Some(match key {
        "css" => FieldSource::Css(css(&value)?),
        "xpath" => FieldSource::XPath(value.words()?),
        "json" => FieldSource::Json(path(&value)?),
        "jmespath" => FieldSource::JmesPath(value.words()?),
        "script" => FieldSource::Script(value.words()?, section.read("path", path)),
        "header" => FieldSource::Header(lower(value.words()?)),
        "meta" => FieldSource::Meta(value.words()?),
        "json_ld" => FieldSource::JsonLd(value.words()?, section.read("path", path)),
        "microdata" => FieldSource::Microdata(value.words()?, section.read("path", path)),
        "table" => FieldSource::Table(elements(&value)?),
        "carried" => FieldSource::Carried(value.words()?.value),
        "page" => FieldSource::Page(value.one_of(&PageField::ALL.map(|field| (field.as_str(), field)))?),
        _ => {
            let fields = section.need("fields", |given| Section::from_given(given).map(fields));
            FieldSource::Each(selector(&value)?, fields?)
        }
    })
}

/// Returns the key for the source of a field's values, with its value: the first, if there are several.
fn sole_source<'a>(section: &mut Section<'a>) -> Option<(&'static str, Given<'a>)> {
    let all = SOURCES.into_iter().filter_map(|key| Some((key, section.get(key)?)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, given)| given.place());
    let mut all = all.into_iter();
    let Some((first, value)) = all.next() else {
        // These keys are known, although they have no effect without a source.
        let _ = (section.get("path"), section.get("fields"));
        let sources = listed(SOURCES.into_iter());
        return section.wrong(format_args!("does not say where it comes from: give one of {sources}"));
    };
    for (_, other) in all {
        other.wrong::<()>(format_args!("a field has one source, and this one has `{first}` already"));
    }
    Some((first, value))
}

/// Headers are stored by their names in lower case.
fn lower(name: Sited<String>) -> Sited<String> {
    Sited { value: name.value.to_ascii_lowercase(), ..name }
}
