//! How much a field may hold.

use serde_json::Value;
use trawl_common::text::legible;

use crate::limits::MAX_TEXT;

/// The budget of one field, in bytes of JSON, for all its values together.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Budget {
    pub(crate) fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Whether nothing more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.0 == 0
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.0
    }

    /// Takes so many bytes; `false` if there are not as many, and then there are none.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let rest = self.0.checked_sub(bytes);
        self.0 = rest.unwrap_or_default();
        rest.is_some()
    }

    /// `text` without control characters and superfluous white space, cut to what fits; none when nothing remains.
    pub(crate) fn legible(&mut self, text: &str) -> Option<Value> {
        self.keep(legible(text, self.0.min(MAX_TEXT)))
    }

    /// `html` without control characters but line breaks and tabs, cut to what fits.
    pub(crate) fn html(&mut self, html: &str) -> Option<Value> {
        let kept: String = html.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        if kept.trim().is_empty() { None } else { self.keep(kept) }
    }

    /// JSON with its texts made legible; none if not all of it fits.
    pub(crate) fn json(&mut self, value: &Value) -> Option<Value> {
        if !self.take("null,".len()) {
            return None;
        }
        Some(match value {
            Value::String(text) => {
                let text = legible(text, MAX_TEXT);
                self.take(text.chars().map(written).sum()).then_some(Value::String(text))?
            }
            Value::Array(values) => {
                values.iter().map(|value| self.json(value)).collect::<Option<Vec<_>>>()?.into()
            }
            Value::Object(fields) => {
                let mut field = |(name, value): (&String, &Value)| {
                    let name = legible(name, MAX_TEXT);
                    self.take(name.chars().map(written).sum::<usize>() + "\"\":".len())
                        .then(|| Some((name, self.json(value)?)))?
                };
                Value::Object(fields.iter().map(&mut field).collect::<Option<_>>()?)
            }
            other => other.clone(),
        })
    }

    fn keep(&mut self, mut text: String) -> Option<Value> {
        let mut length = text.len() + text.bytes().filter(|byte| is_escaped(*byte)).count();
        // Most texts fit: only one that does not is looked at character by character.
        if length > self.0 || text.len() > MAX_TEXT {
            length = 0;
            let end = text.char_indices().find(|(at, c)| {
                length += written(*c);
                length > self.0 || at + c.len_utf8() > MAX_TEXT
            });
            if let Some((end, _)) = end {
                text.truncate(end);
            }
        }
        // With quotes and a comma: a list of very many short texts has an end.
        self.take(length + "\"\",".len());
        if text.is_empty() { None } else { Some(Value::String(text)) }
    }
}

/// How many bytes a character is in JSON.
fn written(c: char) -> usize {
    c.len_utf8() + usize::from(u8::try_from(c).is_ok_and(is_escaped))
}

/// Whether a character of one byte has a backslash before it in JSON.
fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | b'\n' | b'\t')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_without_content_is_nothing() {
        assert_eq!(Budget::of(9).legible(" a\u{0} "), Some(json!("a")));
        assert_eq!(Budget::of(9).legible(" \u{0} \n"), None);
        assert_eq!(Budget::of(99).html(" \u{1b} \n"), None);
        assert_eq!(Budget::of(99).html("<p>\u{1b}a\n b"), Some(json!("<p>a\n b")));
    }

    #[test]
    fn what_does_not_fit_is_cut_or_left_out() {
        let mut budget = Budget::of(6);
        assert_eq!(budget.legible("abcdefgh"), Some(json!("abcdef")));
        assert!(budget.is_full());
        assert_eq!(budget.legible("abc"), None);
        assert_eq!(Budget::of(6).legible("\"a\"\"\"\""), Some(json!("\"a\"")));
        assert_eq!(
            Budget::of(99).json(&json!({"a": ["b\u{7} ", null, 1]})),
            Some(json!({"a": ["b", null, 1]}))
        );
        assert_eq!(Budget::of(9).json(&json!({"a": ["b", 1]})), None);
    }
}
