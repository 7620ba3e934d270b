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

/// The steps that may be a word alone.
const WORDS: [(&str, Step); 8] = [
    ("strip", Step::Strip),
    ("lower", Step::Lower),
    ("upper", Step::Upper),
    ("url", Step::Read(Kind::Url)),
    ("number", Step::Read(Kind::Number)),
    ("integer", Step::Read(Kind::Integer)),
    ("boolean", Step::Read(Kind::Boolean)),
    ("date", Step::Read(Kind::Date)),
];

/// The steps that are a table of one key.
const KEYS: [(&str, Step); 16] = [
    ("strip", Step::Strip),
    ("replace", Step::Replace),
    ("regex", Step::Regex),
    ("matches", Step::Matches),
    ("split", Step::Split),
    ("join", Step::Join),
    ("slice", Step::Slice),
    ("chars", Step::Chars),
    ("template", Step::Template),
    ("default", Step::Default),
    ("path", Step::Path),
    ("jmespath", Step::JmesPath),
    ("number", Step::Read(Kind::Number)),
    ("integer", Step::Read(Kind::Integer)),
    ("boolean", Step::Read(Kind::Boolean)),
    ("date", Step::Read(Kind::Date)),
];

#[derive(Clone, Copy)]
enum Step {
    Strip,
    Lower,
    Upper,
    Replace,
    Regex,
    Matches,
    Split,
    Join,
    Slice,
    Chars,
    Template,
    Default,
    Path,
    JmesPath,
    Read(Kind),
}

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
    let named: Vec<_> = KEYS.iter().filter_map(|(key, step)| Some((*step, section.get(key)?))).collect();
    let [(step, value)] = named.as_slice() else {
        if named.is_empty() && !section.is_empty() {
            section.end();
            return None;
        }
        let keys = listed(KEYS.iter().map(|(key, _)| *key));
        return section.wrong(format_args!("a step has one of the keys {keys}"));
    };
    section.end();
    argued(*step, value)
}

/// Reads a step that is a word.
fn word(given: &Given<'_>) -> Option<Transform> {
    let name = given.verbatim()?;
    if let (None, Some((key, _))) =
        (WORDS.iter().find(|(word, _)| *word == name), KEYS.iter().find(|(key, _)| *key == name))
    {
        return given.wrong(format_args!("`{key}` needs a value: {{ {key} = ... }}"));
    }
    Some(match given.one_of(&WORDS)? {
        Step::Lower => Transform::Lower,
        Step::Upper => Transform::Upper,
        Step::Read(kind) => Transform::Read(Conversion { kind, ..Conversion::default() }),
        _ => Transform::Strip(None),
    })
}

/// Reads a step with its value.
fn argued(step: Step, value: &Given<'_>) -> Option<Transform> {
    let text = || value.text().map(|text| text.value);
    let filled = || {
        text().and_then(|text| if text.is_empty() { value.wrong("must not be empty") } else { Some(text) })
    };
    Some(match step {
        Step::Strip => Transform::Strip(Some(filled()?)),
        Step::Replace => replace(value)?,
        Step::Regex => Transform::Regex(patterns::regex(value)?),
        Step::Matches => Transform::Matches(patterns::regex(value)?),
        Step::Split => Transform::Split(filled()?),
        Step::Join => Transform::Join(text()?),
        Step::Slice => range(value).map(|(from, to)| Transform::Slice(from, to))?,
        Step::Chars => range(value).map(|(from, to)| Transform::Chars(from, to))?,
        Step::Template => {
            let text = filled()?;
            if !text.contains("{value}") {
                return value.wrong("has no `{value}`, which stands for the value");
            }
            Transform::Template(text)
        }
        Step::Default => Transform::Default(filled()?),
        Step::Path => Transform::Path(patterns::path(value)?),
        Step::JmesPath => Transform::JmesPath(value.words()?),
        Step::Read(kind) => {
            let mut section = Section::from_given(value)?;
            let conversion = conversion(&mut section, kind);
            section.end();
            Transform::Read(conversion)
        }
        Step::Lower | Step::Upper => return None,
    })
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
