//! The steps of `transform`, on the values that a field has found.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::Regex;
use serde_json::Value;
use trawl_common::text::printable;

use crate::document::base::Base;
use crate::document::json::{self, Path, parts};
use crate::jmespath::{JmesPath, Unmet};
use crate::limits::MAX_TEXT;
use crate::values::budget::Budget;
use crate::values::convert::{Convert, Refusal, reason};

/// Maximum number of values after a step.
const MAX_VALUES: usize = 10_000;
/// Maximum size of all values after a step, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// Number of values of a step that are shown, and of bytes of each.
const SHOWN: (usize, usize) = (3, 60);

/// The steps of a field.
#[derive(Debug, Default)]
pub(crate) struct Transform(pub(crate) Vec<Step>);

/// A step.
#[derive(Debug)]
pub(crate) struct Step {
    /// The name, as in spider files.
    pub(crate) name: &'static str,
    pub(crate) does: Does,
}

/// The effect of a step.
#[derive(Debug)]
pub(crate) enum Does {
    Strip(Option<Vec<char>>),
    Lower,
    Upper,
    Replace(Regex, String),
    Regex(Regex),
    Matches(Regex),
    Split(String),
    Join(String),
    Slice(i64, Option<i64>),
    Chars(i64, Option<i64>),
    Template(String),
    Default(String),
    /// A path, and whether a list that it finds is as many values.
    Path(Path, bool),
    JmesPath(JmesPath, bool),
    Read(Box<Convert>),
}

/// The page whose values are changed.
#[derive(Clone, Copy)]
pub(crate) struct On<'a> {
    pub(crate) base: &'a Base<'a>,
    pub(crate) given_up: &'a AtomicBool,
    /// Whether the values were JSON at first.
    pub(crate) is_json: bool,
}

/// The result of the steps.
#[derive(Debug, Default)]
pub(crate) struct Transformed {
    pub(crate) values: Vec<Value>,
    /// The reason why a step refused a value; that of the first one.
    pub(crate) refused: Option<&'static str>,
    /// Whether values were left out because they were too many.
    pub(crate) is_cut: bool,
}

const TOO_LONG: Refusal = Some("the step makes a text that is longer than one may be");

impl Transform {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a step looks at all values of the field together.
    pub(crate) fn is_for_all(&self) -> bool {
        self.0.iter().any(|step| matches!(step.does, Does::Join(_) | Does::Slice(..) | Does::Default(_)))
    }

    /// Returns the values after the last step.
    pub(crate) fn run(&self, start: &[Value], on: &On<'_>) -> Transformed {
        self.traced(start, on, |_, _| {})
    }

    /// Returns the values after each step, for people.
    pub(crate) fn trace(&self, start: &[Value], on: &On<'_>) -> Vec<String> {
        let mut trace = Vec::with_capacity(self.0.len());
        self.traced(start, on, |step, after| {
            trace.push(match after.refused {
                Some(why) if after.values.is_empty() => format!("{}: {why}", step.name),
                _ => format!("{}: {}", step.name, shown(&after.values)),
            });
        });
        trace
    }

    fn traced(&self, start: &[Value], on: &On<'_>, mut see: impl FnMut(&Step, &Transformed)) -> Transformed {
        let mut done = Transformed { values: start.to_vec(), ..Transformed::default() };
        for step in &self.0 {
            if on.given_up.load(Ordering::Relaxed) {
                break;
            }
            let had_values = !done.values.is_empty();
            let mut after = Transformed::default();
            step.does.apply(&done.values, on, &mut after);
            see(step, &after);
            done.refused = done.refused.or(after.refused);
            done.is_cut |= after.is_cut;
            done.values = after.values;
            if had_values && done.values.is_empty() && !self.0.iter().any(Step::is_default) {
                break;
            }
        }
        done
    }
}

impl Step {
    fn is_default(&self) -> bool {
        matches!(self.does, Does::Default(_))
    }
}

impl Does {
    fn apply(&self, values: &[Value], on: &On<'_>, after: &mut Transformed) {
        match self {
            Self::Join(separator) if !values.is_empty() => {
                let texts: Vec<_> = values.iter().map(text).collect();
                let length: usize = texts.iter().map(|text| text.len() + separator.len()).sum();
                match length > MAX_TEXT {
                    true => after.refused = TOO_LONG,
                    false => after.values.push(texts.join(separator).into()),
                }
            }
            Self::Slice(from, to) => after.values = part(values, *from, *to).to_vec(),
            Self::Default(default) => {
                after.values =
                    values.iter().filter(|value| !text(value).trim().is_empty()).cloned().collect();
                if after.values.is_empty() {
                    after.values.push(default.as_str().into());
                }
            }
            _ => {
                let mut bytes_left = MAX_BYTES;
                for value in values {
                    let from = after.values.len();
                    if let Err(refusal) = self.change(value, on, &mut after.values) {
                        after.values.truncate(from);
                        after.refused = after.refused.or(refusal);
                    }
                    let bytes: usize = after.values[from..].iter().map(size).sum();
                    let left = bytes_left.checked_sub(bytes);
                    bytes_left = left.unwrap_or_default();
                    if left.is_none() || after.values.len() > MAX_VALUES {
                        let most = if left.is_none() { from } else { MAX_VALUES };
                        after.values.truncate(most);
                        after.is_cut = true;
                        return;
                    }
                }
            }
        }
    }

    /// Adds what a value becomes.
    fn change(&self, value: &Value, on: &On<'_>, out: &mut Vec<Value>) -> Result<(), Refusal> {
        let old = text(value);
        let refused = |why| reason(&old, why);
        let fits = |new: String| {
            let is_too_long = new.len() > MAX_TEXT && new.len() > old.len();
            if is_too_long { Err(TOO_LONG) } else { Ok(Value::String(new)) }
        };
        let parsed = || match value {
            Value::String(text) => json::parse(text).map(Cow::Owned).map_err(|_| refused("it is no JSON")),
            value => Ok(Cow::Borrowed(value)),
        };
        match self {
            Self::Strip(None) => out.push(old.trim().into()),
            Self::Strip(Some(chars)) => out.push(old.trim_matches(&chars[..]).into()),
            Self::Lower => out.push(fits(old.to_lowercase())?),
            Self::Upper => out.push(fits(old.to_uppercase())?),
            Self::Replace(pattern, with) => out.push(fits(replaced(&old, pattern, with)?)?),
            Self::Regex(pattern) => {
                let found = pattern.captures(&old);
                let found = found.ok_or_else(|| refused("the regular expression does not match"))?;
                out.push(found.get(1).or(found.get(0)).ok_or(None)?.as_str().into());
            }
            Self::Matches(pattern) => {
                let before = out.len();
                let found = pattern.captures_iter(&old).filter_map(|found| found.get(1).or(found.get(0)));
                out.extend(found.take(MAX_VALUES + 1).map(|found| Value::from(found.as_str())));
                if out.len() == before {
                    return Err(refused("the regular expression does not match"));
                }
            }
            Self::Split(separator) => {
                let parts = old.split(separator.as_str()).map(str::trim).filter(|part| !part.is_empty());
                out.extend(parts.take(MAX_VALUES + 1).map(Value::from));
            }
            Self::Chars(from, to) => {
                let starts: Vec<usize> = old.char_indices().map(|(at, _)| at).collect();
                let kept = part(&starts, *from, *to);
                let end = kept.last().and_then(|last| Some(last + old[*last..].chars().next()?.len_utf8()));
                out.push(kept.first().zip(end).map_or("", |(from, to)| &old[*from..to]).into());
            }
            Self::Template(template) => {
                let times = template.matches("{value}").count();
                if template.len() + times * old.len() > MAX_TEXT {
                    return Err(TOO_LONG);
                }
                out.push(template.replace("{value}", &old).into());
            }
            Self::Path(path, splits) => {
                let (parsed, before) = (parsed()?, out.len());
                let mut budget = Budget::new(MAX_BYTES);
                for found in path.find(&parsed) {
                    for part in parts(found, *splits).iter().filter(|part| !part.is_null()) {
                        out.push(budget.json(part).ok_or(TOO_LONG)?);
                    }
                }
                if out.len() == before {
                    return Err(Some("the path finds nothing"));
                }
            }
            Self::JmesPath(expression, splits) => {
                let parsed = parsed()?;
                match expression.find(&parsed) {
                    Err(Unmet::TooMuch) => return Err(TOO_LONG),
                    Err(Unmet::WrongType) => {
                        return Err(Some("a function of the expression is not for values of this type"));
                    }
                    Ok(Value::Null) => return Err(Some("the expression finds nothing")),
                    Ok(Value::Array(parts)) if *splits => {
                        out.extend(parts.into_iter().filter(|part| !part.is_null()).take(MAX_VALUES + 1));
                    }
                    Ok(found) => out.push(found),
                }
            }
            Self::Read(convert) => {
                out.push(convert.transformed(value, on.is_json, on.base, &mut Budget::new(MAX_BYTES))?);
            }
            Self::Join(_) | Self::Slice(..) | Self::Default(_) => {}
        }
        Ok(())
    }
}

/// Returns a value as text.
fn text(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed)
}

/// The approximate size of a value as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(size).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + size(value)).sum(),
        _ => 8,
    }
}

/// Returns the elements from one number up to another, which count from the end if negative.
fn part<T>(all: &[T], from: i64, to: Option<i64>) -> &[T] {
    let place = |at: i64| {
        let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
        if at < 0 { all.len().saturating_sub(distance) } else { distance.min(all.len()) }
    };
    let (from, to) = (place(from), to.map_or(all.len(), place));
    all.get(from..to).unwrap_or_default()
}

/// Replaces the matches of a pattern in a text, which must not become too long.
fn replaced(text: &str, pattern: &Regex, with: &str) -> Result<String, Refusal> {
    let mut out = String::new();
    let mut end = 0;
    for found in pattern.captures_iter(text) {
        let whole = found.get(0).ok_or(None)?;
        out.push_str(&text[end..whole.start()]);
        found.expand(with, &mut out);
        end = whole.end();
        if out.len() > MAX_TEXT && out.len() > text.len() {
            return Err(TOO_LONG);
        }
    }
    out.push_str(&text[end..]);
    Ok(out)
}

/// Shows the first of several values.
fn shown(values: &[Value]) -> String {
    let first = values.iter().take(SHOWN.0).map(|value| format!("`{}`", printable(&text(value), SHOWN.1)));
    let first: Vec<String> = first.collect();
    match values.len() {
        0 => "no value".to_owned(),
        more if more > SHOWN.0 => format!("{}, … ({more} values)", first.join(", ")),
        _ => first.join(", "),
    }
}
