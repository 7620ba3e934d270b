//! Reads JSON objects that people and programs write, with errors that name the key.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::nearest::{meant, nearest};
use crate::priority::Priority;
use crate::text::printable;

/// The highest number of retries that a task or a request may set.
pub const MAX_RETRIES: u32 = 1_000_000;

/// Maximum number of unknown keys that are named.
const MAX_UNKNOWN: usize = 20;

/// A key that nothing here has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("has no `{key}`{hint}")]
pub struct UnknownKey {
    key: String,
    /// The end of the sentence: the key that may have been meant, or all there are.
    hint: String,
    /// The key that may have been meant.
    meant: Option<String>,
}

impl UnknownKey {
    fn new<const N: usize>(key: &str, keys: [&str; N]) -> Self {
        Self {
            key: printable(key, 64),
            hint: nearest(key, keys.into_iter()),
            meant: meant(key, keys.into_iter()).map(str::to_owned),
        }
    }
}

/// Keys that nothing here has, each once, and no more than [`MAX_UNKNOWN`]: a stranger chooses how many there are.
#[derive(Debug, Default)]
pub(crate) struct UnknownKeys {
    keys: Vec<UnknownKey>,
    seen: HashSet<String>,
}

/// A value of the wrong type for its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is {expected}, not {found}")]
pub struct WrongValue {
    key: &'static str,
    expected: &'static str,
    found: String,
}

impl WrongValue {
    /// Creates the error of a value under `key` whose type, that of `found`, is not the expected one.
    pub(crate) fn kind(key: &'static str, expected: &'static str, found: &Value) -> Self {
        Self { key, expected, found: kind(found).to_owned() }
    }

    /// Like [`kind`](Self::kind), but includes the text if the value is one: another text is expected.
    pub(crate) fn word(key: &'static str, expected: &'static str, found: &Value) -> Self {
        match found {
            Value::String(word) => Self { key, expected, found: format!("`{}`", printable(word, 40)) },
            other => Self::kind(key, expected, other),
        }
    }

    /// Like [`kind`](Self::kind), but includes the number if the value is one: its type may be right and its size
    /// wrong.
    pub(crate) fn number(key: &'static str, expected: &'static str, found: &Value) -> Self {
        match found {
            Value::Number(number) => Self { key, expected, found: printable(&number.to_string(), 40) },
            other => Self::kind(key, expected, other),
        }
    }
}

/// Returns the members of an object that may only have these keys. A value of `null` counts as absent.
pub(crate) fn known<const N: usize>(
    mut object: Map<String, Value>,
    keys: [&str; N],
) -> Result<Map<String, Value>, UnknownKey> {
    object.retain(|_, value| !value.is_null());
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(UnknownKey::new(key, keys)),
        None => Ok(object),
    }
}

impl UnknownKeys {
    /// Takes what is none of `keys` out of an object, and adds it to these; takes what is `null` out as well.
    pub(crate) fn take<const N: usize>(&mut self, object: &mut Map<String, Value>, keys: [&str; N]) {
        object.retain(|key, value| {
            let is_known = keys.contains(&key.as_str());
            if !is_known && !value.is_null() {
                self.add(key, keys);
            }
            is_known && !value.is_null()
        });
    }

    fn add<const N: usize>(&mut self, key: &str, keys: [&str; N]) {
        if self.keys.len() < MAX_UNKNOWN && self.seen.insert(key.to_owned()) {
            self.keys.push(UnknownKey::new(key, keys));
        }
    }

    /// Takes out the one that may be a misspelling of `key`.
    pub(crate) fn take_meant(&mut self, key: &str) -> Option<UnknownKey> {
        let at = self.keys.iter().position(|unknown| unknown.meant.as_deref() == Some(key))?;
        Some(self.keys.remove(at))
    }

    /// Returns them in the order in which they came.
    pub(crate) fn into_vec(self) -> Vec<UnknownKey> {
        self.keys
    }
}

/// Takes the text under `key`.
pub(crate) fn text(object: &mut Map<String, Value>, key: &'static str) -> Result<Option<String>, WrongValue> {
    match object.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(WrongValue::kind(key, "text", &other)),
    }
}

/// Like `text`, for a text that is often JSON itself and may have been written as plain JSON by mistake.
pub(crate) fn quoted(
    object: &mut Map<String, Value>,
    key: &'static str,
) -> Result<Option<String>, WrongValue> {
    match object.get(key) {
        Some(value @ (Value::Array(_) | Value::Object(_))) => {
            Err(WrongValue::kind(key, "text: write the JSON as a string", value))
        }
        _ => text(object, key),
    }
}

/// Takes the boolean under `key`.
pub(crate) fn flag(object: &mut Map<String, Value>, key: &'static str) -> Result<Option<bool>, WrongValue> {
    match object.remove(key) {
        None => Ok(None),
        Some(Value::Bool(holds)) => Ok(Some(holds)),
        Some(other) => Err(WrongValue::kind(key, "true or false", &other)),
    }
}

/// Returns the priority; 0 if absent.
pub(crate) fn priority(object: &Map<String, Value>) -> Result<Priority, WrongValue> {
    let Some(value) = object.get("priority") else { return Ok(Priority::default()) };
    let number = value.as_f64().and_then(|number| number.try_into().ok());
    number.ok_or_else(|| WrongValue::number("priority", "a number", value))
}

/// Returns the number of retries, if present.
pub(crate) fn retries(object: &Map<String, Value>, key: &'static str) -> Result<Option<u32>, WrongValue> {
    let Some(value) = object.get(key) else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    match number.filter(|number| *number <= MAX_RETRIES) {
        Some(number) => Ok(Some(number)),
        None => Err(WrongValue::number(key, "a whole number from 0 to 1000000", value)),
    }
}

/// Describes the type of a JSON value.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
