//! JSON responses, and paths into JSON.

use serde_json::Value;
use serde_json_path::JsonPath;

/// The most values of one document: with their names some 100 MB.
const MAX_VALUES: usize = 500_000;

/// Reads JSON with no more values than people read, nested at most 127 deep. The error says what is wrong.
pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if most_values(text) > MAX_VALUES {
        return Err(format!("JSON of more than {MAX_VALUES} values"));
    }
    serde_json::from_str(&String::from_utf8_lossy(text)).map_err(|error| format!("not JSON: {error}"))
}

/// Whether a content type is that of JSON.
pub(crate) fn is_json(essence: &str) -> bool {
    let essence = essence.to_ascii_lowercase();
    matches!(&*essence, "application/json" | "text/json") || essence.ends_with("+json")
}

/// At most so many values are in `text`: each but the first comes after one of these.
fn most_values(text: &[u8]) -> usize {
    let mut count = 1;
    let mut is_text = false;
    let mut is_escaped = false;
    for byte in text {
        match byte {
            _ if std::mem::take(&mut is_escaped) => {}
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

/// A JSON Pointer (RFC 6901) or a JSONPath (RFC 9535).
#[derive(Debug)]
pub(crate) enum Path {
    Pointer(String),
    Query(JsonPath),
}

impl Path {
    /// Reads either: a pointer is empty or begins with `/`, a JSONPath with `$`.
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

    /// Whether `text` is meant as a path and not as a CSS selector.
    pub(crate) fn is_meant(text: &str) -> bool {
        text.starts_with(['/', '$'])
    }

    /// What it leads to.
    pub(crate) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Pointer(pointer) => value.pointer(pointer).into_iter().collect(),
            Self::Query(path) => path.query(value).all(),
        }
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
        assert_eq!(parse(b"\xef\xbb\xbf[1, \"[,{\\\",\"]"), Ok(json!([1, "[,{\","])));
        assert!(parse(b"{").unwrap_err().starts_with("not JSON: EOF"));
        assert!(parse("[".repeat(200).as_bytes()).unwrap_err().contains("recursion limit"));
        let list = |values: usize| format!("[{}0]", "0,".repeat(values - 1));
        assert!(parse(list(MAX_VALUES - 1).as_bytes()).is_ok());
        assert_eq!(parse(list(MAX_VALUES).as_bytes()), Err("JSON of more than 500000 values".to_owned()));
        assert_eq!(parse(b"\"\xff\""), Ok(json!("\u{fffd}")));
    }

    #[test]
    fn json_is_recognised_by_its_type() {
        for json in ["application/json", "Application/LD+json", "text/json"] {
            assert!(is_json(json), "{json}");
        }
        assert!(!is_json("text/html") && !is_json("application/jsonp"));
    }
}
