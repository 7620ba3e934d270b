//! The data of Nuxt 3 (`<script id="__NUXT_DATA__">`), a list whose values name others by their places in it
//! (<https://github.com/Rich-Harris/devalue>).

use serde_json::{Map, Value};

/// Maximum number of values: a value that several others name is there several times.
const MAX_VALUES: usize = 500_000;
/// Maximum nesting: a value may name one around it.
const MAX_DEPTH: usize = 100;

/// Returns the value that such a list stands for; another value as it is.
pub(crate) fn hydrated(value: Value) -> Value {
    let Value::Array(list) = &value else { return value };
    let is_reactive = |first: &Value| {
        first.get(0).and_then(Value::as_str).is_some_and(|word| WRAPPERS.contains(&word))
            && first.get(1).is_some_and(Value::is_u64)
    };
    if !list.first().is_some_and(is_reactive) {
        return value;
    }
    Hydration { list, left: MAX_VALUES }.at(0, 0).unwrap_or(value)
}

/// The words before the place of a value that stands for itself.
const WRAPPERS: [&str; 8] = [
    "Reactive",
    "ShallowReactive",
    "Ref",
    "ShallowRef",
    "EmptyRef",
    "EmptyShallowRef",
    "NuxtError",
    "Island",
];

struct Hydration<'a> {
    list: &'a [Value],
    left: usize,
}

impl Hydration<'_> {
    /// Returns the value at a place; `None` if there are too many.
    fn at(&mut self, place: usize, depth: usize) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return Some(Value::Null);
        }
        let list = self.list;
        let Some(value) = list.get(place) else { return Some(Value::Null) };
        Some(match value {
            Value::Object(fields) => {
                let mut whole = Map::new();
                for (name, place) in fields {
                    whole.insert(name.clone(), self.named(place, depth)?);
                }
                Value::Object(whole)
            }
            Value::Array(parts) => match parts.first().and_then(Value::as_str) {
                None => self.all(parts, depth)?,
                Some("Set") => self.all(&parts[1..], depth)?,
                Some("Map") => {
                    let mut whole = Map::new();
                    for pair in parts[1..].chunks_exact(2) {
                        let (name, value) = (self.named(&pair[0], depth)?, self.named(&pair[1], depth)?);
                        whole.insert(name.as_str().map_or_else(|| name.to_string(), str::to_owned), value);
                    }
                    Value::Object(whole)
                }
                Some(word) if WRAPPERS.contains(&word) => self.named(parts.get(1)?, depth)?,
                // A date, a large number, and the like.
                Some(_) => parts.get(1).cloned().unwrap_or_default(),
            },
            other => other.clone(),
        })
    }

    fn all(&mut self, places: &[Value], depth: usize) -> Option<Value> {
        places.iter().map(|place| self.named(place, depth)).collect::<Option<Vec<_>>>().map(Value::Array)
    }

    /// Returns the value at the place that a number names; a negative one stands for undefined, NaN and the like.
    fn named(&mut self, place: &Value, depth: usize) -> Option<Value> {
        match place.as_u64().and_then(|place| usize::try_from(place).ok()) {
            Some(place) => self.at(place, depth + 1),
            None => Some(Value::Null),
        }
    }
}
