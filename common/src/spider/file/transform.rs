//! `transform`: the steps of a field.

use toml::de::DeValue;

use super::fields::conversion;
use super::given::Given;
use super::patterns;
use super::section::Section;
use crate::nearest::listed;
use crate::spider::{Conversion, Kind, Transform};

/// Maximum number of steps of a field.
const MAX_STEPS: usize = 32;

/// Makes a step that has no value.
type MakeStep = fn() -> Transform;

/// Reads the value of a step.
type ReadStep = fn(&Given<'_>) -> Option<Transform>;

/// The steps that may be a word alone.
const WORDS: [(&str, MakeStep); 8] = [
    ("strip", || Transform::Strip(None)),
    ("lower", || Transform::Lower),
    ("upper", || Transform::Upper),
    ("url", || reading(Kind::Url)),
    ("number", || reading(Kind::Number)),
    ("integer", || reading(Kind::Integer)),
    ("boolean", || reading(Kind::Boolean)),
    ("date", || reading(Kind::Date)),
];

/// The steps that are a table of one key, and what reads its value.
const KEYS: [(&str, ReadStep); 16] = [
    ("strip", |value| filled(value).map(|text| Transform::Strip(Some(text)))),
    ("replace", replace),
    ("regex", |value| patterns::regex(value).map(Transform::Regex)),
    ("matches", |value| patterns::regex(value).map(Transform::Matches)),
    ("split", |value| filled(value).map(Transform::Split)),
    ("join", |value| Some(Transform::Join(value.text()?.value))),
    ("slice", |value| range(value).map(|(from, to)| Transform::Slice(from, to))),
    ("chars", |value| range(value).map(|(from, to)| Transform::Chars(from, to))),
    ("template", template),
    ("default", |value| filled(value).map(Transform::Default)),
    ("path", |value| patterns::path(value).map(Transform::Path)),
    ("jmespath", |value| value.words().map(Transform::JmesPath)),
    ("number", |value| converted(value, Kind::Number)),
    ("integer", |value| converted(value, Kind::Integer)),
    ("boolean", |value| converted(value, Kind::Boolean)),
    ("date", |value| converted(value, Kind::Date)),
];

/// Reads the steps of a field.
pub(super) fn steps(given: &Given<'_>) -> Option<Vec<Transform>> {
    let all = given.list()?;
    if all.len() > MAX_STEPS {
        given.wrong::<()>(format_args!("a field has {MAX_STEPS} steps at most"));
    }
    Some(all.iter().take(MAX_STEPS).filter_map(step).collect())
}

fn step(given: &Given<'_>) -> Option<Transform> {
    if !given.is_table() {
        return word(given);
    }
    let mut section = Section::from_given(given)?;
    let named: Vec<_> = KEYS.iter().filter_map(|(key, read)| Some((*read, section.get(key)?))).collect();
    let [(read, value)] = named.as_slice() else {
        if named.is_empty() && !section.is_empty() {
            section.end();
            return None;
        }
        let keys = listed(KEYS.iter().map(|(key, _)| *key));
        return section.wrong(format_args!("a step has one of the keys {keys}"));
    };
    section.end();
    read(value)
}

/// Reads a step that is a word.
fn word(given: &Given<'_>) -> Option<Transform> {
    let name = given.verbatim()?;
    if let (None, Some((key, _))) =
        (WORDS.iter().find(|(word, _)| *word == name), KEYS.iter().find(|(key, _)| *key == name))
    {
        return given.wrong(format_args!("`{key}` needs a value: {{ {key} = ... }}"));
    }
    given.one_of(&WORDS).map(|step| step())
}

/// Reads a text that is not empty.
fn filled(given: &Given<'_>) -> Option<String> {
    let text = given.text()?.value;
    if text.is_empty() { given.wrong("must not be empty") } else { Some(text) }
}

fn template(given: &Given<'_>) -> Option<Transform> {
    let text = filled(given)?;
    if !text.contains("{value}") {
        return given.wrong("has no `{value}`, which stands for the value");
    }
    Some(Transform::Template(text))
}

/// Returns the step that reads a value of this kind in the usual way.
fn reading(kind: Kind) -> Transform {
    Transform::Read(Conversion { kind, ..Conversion::default() })
}

/// Reads the way in which a value of this kind is read.
fn converted(given: &Given<'_>, kind: Kind) -> Option<Transform> {
    let mut section = Section::from_given(given)?;
    let conversion = conversion(&mut section, kind);
    section.end();
    Some(Transform::Read(conversion))
}

/// Reads a regular expression and the text that replaces its matches.
fn replace(given: &Given<'_>) -> Option<Transform> {
    let wanted = "a list of a regular expression and its replacement is wanted: ['\\s+', \" \"]";
    if !given.is_list() {
        return given.wrong(wanted);
    }
    let all = given.list()?;
    let [pattern, with] = all.as_slice() else { return given.wrong(wanted) };
    let (pattern, with) = (patterns::regex(pattern)?, with.text()?.value);
    let compiled = regex::Regex::new(&pattern.value).ok()?;
    let groups: Vec<&str> = compiled.capture_names().flatten().collect();
    let is_group = |name: &str| {
        groups.contains(&name) || name.parse().is_ok_and(|number: usize| number < compiled.captures_len())
    };
    let unknown = references(&with).find(|name| !is_group(name));
    if let Some(name) = unknown {
        return given.wrong(format_args!(
            "the regular expression has no group `{name}`: write `${{1}}` before letters, and `$$` for a dollar"
        ));
    }
    Some(Transform::Replace(pattern, with))
}

/// Returns the names of the groups that a replacement refers to, as the regex crate reads them.
fn references(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = &rest[rest.find('$')? + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                rest = after;
                continue;
            }
            let (name, after) = match rest.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
                Some(braced) => braced,
                None => {
                    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
                    rest.split_at(rest.find(is_end).unwrap_or(rest.len()))
                }
            };
            rest = after;
            if !name.is_empty() {
                return Some(name);
            }
        }
    })
}

/// Reads one or two numbers.
fn range(given: &Given<'_>) -> Option<(i64, Option<i64>)> {
    let wanted = "a list of one or two whole numbers is wanted: [0, 10], or [-1] for the last";
    let all = match given.value.get_ref() {
        DeValue::Array(_) => given.all(|given| given.whole(i64::MIN))?,
        _ => return given.wrong(wanted),
    };
    match *all.as_slice() {
        [from] => Some((from, None)),
        [from, to] => Some((from, Some(to))),
        _ => given.wrong(wanted),
    }
}
