//! JSON responses, and paths into JSON.

use serde_json::{Number, Value};
use serde_json_path::JsonPath;

use crate::document::json_repair::repair;

/// Maximum number of values in one document: with their names some 100 MB.
const MAX_VALUES: usize = 500_000;

/// Number of digits that every 64-bit integer can hold.
const SAFE_DIGITS: usize = 18;

/// Parses JSON with a limited number of values, nested at most 127 deep. Small mistakes are repaired ([`repair`]). The
/// error describes the problem.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let survey = Survey::from_text(text.as_bytes());
    survey.check()?;
    match serde_json::from_str(text) {
        Ok(value) if !survey.has_long_number => Ok(value),
        strict => {
            let repaired = repair(text);
            // A quotation mark in a comment hides values from the first survey.
            Survey::from_text(repaired.as_bytes()).check()?;
            match (serde_json::from_str(&repaired), strict) {
                (Ok(value), _) | (Err(_), Ok(value)) => Ok(value),
                (Err(_), Err(error)) => Err(format!("not JSON: {error}")),
            }
        }
    }
}

/// An estimate of the content of a JSON text.
struct Survey {
    /// Upper bound on the number of values: each but the first comes after a comma or an opening bracket.
    most_values: usize,
    /// Whether there may be an integer of more than 64 bits.
    has_long_number: bool,
}

impl Survey {
    fn from_text(text: &[u8]) -> Self {
        let mut survey = Self { most_values: 1, has_long_number: false };
        let (mut is_text, mut is_escaped, mut digits) = (false, false, 0);
        for byte in text {
            digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
            match byte {
                _ if std::mem::take(&mut is_escaped) => {}
                b'\\' => is_escaped = is_text,
                b'"' => is_text = !is_text,
                b',' | b'[' | b'{' if !is_text => survey.most_values += 1,
                _ => survey.has_long_number |= digits > SAFE_DIGITS && !is_text,
            }
        }
        survey
    }

    /// Fails if there may be more values than are read.
    fn check(&self) -> Result<(), String> {
        if self.most_values > MAX_VALUES {
            return Err(format!("JSON of more than {MAX_VALUES} values"));
        }
        Ok(())
    }
}

/// A JSON Pointer (RFC 6901) or a JSONPath (RFC 9535).
#[derive(Debug)]
pub(crate) enum Path {
    Pointer(String),
    Query(JsonPath),
}

impl Path {
    /// Parses either: a pointer is empty or begins with `/`, a JSONPath with `$`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('$') {
            return JsonPath::parse(text).map(Self::Query).map_err(|error| error.to_string());
        }
        if !text.is_empty() && !text.starts_with('/') {
            return Err("a JSON Pointer begins with `/`, a JSONPath with `$`".to_owned());
        }
        if text.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            return Err("in a JSON Pointer `~` is written `~0`, and `/` in a name `~1`".to_owned());
        }
        Ok(Self::Pointer(text.to_owned()))
    }

    /// Whether `text` is meant as a path rather than as a CSS selector.
    pub(crate) fn is_meant(text: &str) -> bool {
        text.starts_with(['/', '$'])
    }

    /// Returns the values that a path leads to; without one, the value itself.
    pub(crate) fn reached<'a>(path: Option<&Self>, value: &'a Value) -> Vec<&'a Value> {
        path.map_or_else(|| vec![value], |path| path.find(value))
    }

    /// Returns the values that the path leads to.
    pub(crate) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Pointer(pointer) => value.pointer(pointer).into_iter().collect(),
            Self::Query(path) => path.query(value).all(),
        }
    }
}

/// Returns a number as JSON, a whole one without a decimal point; `None` if it is none.
pub(crate) fn number(number: f64) -> Option<Value> {
    let is_whole = number.fract() == 0.0 && number.abs() < MAX_WHOLE;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
    let whole = is_whole.then_some(number as i64).map(Value::from);
    whole.or_else(|| Number::from_f64(number).map(Value::Number))
}

/// The first whole number whose neighbour is no number of 64 bits.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Returns the elements of a list one by one if it `splits`, another value alone.
pub(crate) fn parts(value: &Value, splits: bool) -> &[Value] {
    match value {
        Value::Array(parts) if splits => parts,
        one => std::slice::from_ref(one),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_and_paths_lead_to_values() {
        let value = json!({"a": [{"b/c": 1}, {"b/c": 2}], "": 3});
        for (path, found) in [
            ("", json!([value])),
            ("/a/1/b~1c", json!([2])),
            ("/", json!([3])),
            ("/x", json!([])),
            ("$.a[*]['b/c']", json!([1, 2])),
            ("$.a[?@['b/c'] > 1]", json!([{"b/c": 2}])),
            ("$..['b/c']", json!([1, 2])),
        ] {
            assert_eq!(json!(Path::parse(path).unwrap().find(&value)), found, "{path}");
        }
    }

    #[test]
    fn what_is_neither_says_why() {
        for path in ["a", "/a~2", "/~", "$.", "$[", "$.a b"] {
            assert!(!Path::parse(path).unwrap_err().is_empty(), "{path}");
        }
    }

    #[test]
    fn documents_are_bounded() {
        assert_eq!(parse("\u{feff}[1, \"[,{\\\",\"]"), Ok(json!([1, "[,{\","])));
        assert!(parse("{").unwrap_err().starts_with("not JSON: EOF"));
        assert!(parse(&"[".repeat(200)).unwrap_err().contains("recursion limit"));
        let list = |values: usize| format!("[{}0]", "0,".repeat(values - 1));
        assert!(parse(&list(MAX_VALUES - 1)).is_ok());
        let hidden = format!("/*\"*/{}", list(MAX_VALUES));
        for text in [list(MAX_VALUES), hidden] {
            assert_eq!(parse(&text), Err("JSON of more than 500000 values".to_owned()));
        }
    }

    #[test]
    fn numbers_keep_their_last_digit_and_those_beyond_64_bits_all_of_them() {
        for (text, value) in [
            (
                "[89370400440532013000, -89370400440532013000]",
                json!(["89370400440532013000", "-89370400440532013000"]),
            ),
            ("[18446744073709551615, -9223372036854775808]", json!([u64::MAX, i64::MIN])),
            ("[1e400, 1.5, \"1234567890123456789012\"]", json!(["1e400", 1.5, "1234567890123456789012"])),
            ("[0.1234567890123456789]", json!([0.123_456_789_012_345_68])),
        ] {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
        // Parsed less accurately, their last digit would differ.
        for text in
            ["1.7976931348623157e308", "122.416294033786585", "0.30000000000000004", "9.5367431640625e-7"]
        {
            assert_eq!(parse(text), Ok(json!(text.parse::<f64>().unwrap())), "{text}");
        }
    }
}
