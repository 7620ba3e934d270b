//! Showing a text that may be a request without the secrets in it.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The replacement for a hidden value.
const HIDDEN: &str = "\u{2026}";

/// Returns a form of `text` that may be shown where it is not a valid request: for a JSON object the URL, the
/// method and the names of the other keys; for a text that only begins like one, its length. A task and any other
/// text are returned unchanged.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with('{') {
        return text.into();
    }
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(object) if object.contains_key("recipe") && !object.contains_key("url") => text.into(),
        Ok(object) => Value::Object(names_of(object)).to_string().into(),
        Err(_) => format!("{{{HIDDEN}}} ({} bytes)", text.len()).into(),
    }
}

fn names_of(object: Map<String, Value>) -> Map<String, Value> {
    let shown = |(key, value): (String, Value)| match (key.as_str(), value) {
        ("url" | "method", Value::String(text)) => (key, Value::String(text)),
        _ => (key, HIDDEN.into()),
    };
    object.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_is_shown_without_what_may_be_secret() {
        for (text, expected) in [
            (
                r#"{"url": "/a", "method": "TRACE", "headers": {"authorization": "S3"}, "headrs": "S3", "body": "S3"}"#,
                r#"{"body":"…","headers":"…","headrs":"…","method":"TRACE","url":"/a"}"#,
            ),
            (r#"{"urll": {"a": "S3"}}"#, r#"{"urll":"…"}"#),
            (r#" {"url": "/a", "headers": {"authorization": "S3""#, "{…} (48 bytes)"),
            (r#"{"recipe": 7}"#, r#"{"recipe": 7}"#),
            (r#"{"recipe": 7, "url": "/", "body": "S3"}"#, r#"{"body":"…","recipe":"…","url":"/"}"#),
            ("no URL", "no URL"),
        ] {
            let shown = without_secrets(text);
            assert_eq!(shown, expected);
            assert!(!shown.contains("S3"));
        }
    }
}
