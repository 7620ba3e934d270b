//! The form in which text leaves a page.

use serde_json::Value;
use trawl_common::text::legible;

/// `text` without control characters and superfluous white space, cut to `max` bytes; null when nothing remains.
pub(super) fn value(text: &str, max: usize) -> Value {
    let text = legible(text, max);
    if text.is_empty() { Value::Null } else { Value::String(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_content_is_null() {
        assert_eq!(value(" a\u{0} ", 9), "a");
        assert_eq!(value(" \u{0} \n", 9), Value::Null);
    }
}
