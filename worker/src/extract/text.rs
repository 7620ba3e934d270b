//! The form in which text leaves a page.

use serde_json::Value;
use trawl_common::text::squeeze;

/// `text` without control characters and superfluous white space; null when nothing remains.
pub(super) fn value(text: &str) -> Value {
    let is_harmful = |c: char| c.is_control() && !c.is_whitespace();
    let clean =
        if text.contains(is_harmful) { squeeze(&text.replace(is_harmful, "")) } else { squeeze(text) };
    if clean.is_empty() { Value::Null } else { Value::String(clean) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_squeezed_and_free_of_control_characters() {
        assert_eq!(value(" a\u{0}b \u{7f} \u{1b}[1m\r\n c\u{85}d "), "ab [1m c d");
        assert_eq!(value("a\u{a0}b"), "a b");
    }

    #[test]
    fn text_without_content_is_null() {
        assert_eq!(value(" \u{0} \n"), Value::Null);
    }
}
