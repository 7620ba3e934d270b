//! Limits the size of a field.

use serde_json::Value;
use trawl_common::text::legible;

use crate::limits::MAX_TEXT;

/// The budget of one field, in bytes of JSON, for all its values together.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
    /// Maximum length of one text.
    longest: usize,
    was_cut: bool,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: bytes, longest: MAX_TEXT, was_cut: false }
    }

    /// Limits the length of each text.
    pub(crate) fn of_texts(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// Whether nothing more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// The number of bytes left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Whether a value was cut or left out for its size since the last call.
    pub(crate) fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.was_cut)
    }

    /// Takes this many bytes. If there are fewer, returns `false` and takes all that are left.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let rest = self.left.checked_sub(bytes);
        self.left = rest.unwrap_or_default();
        rest.is_some()
    }

    /// Returns `text` without control characters and superfluous white space, cut to the remaining size; `None` if
    /// nothing remains.
    pub(crate) fn legible(&mut self, text: &str) -> Option<Value> {
        // A little more than fits, to detect whether there is more.
        self.keep(legible(text, self.left.min(self.longest) + 8))
    }

    /// Returns `text` with its white space but without other control characters, cut to the remaining size; `None` if
    /// only white space remains.
    pub(crate) fn verbatim(&mut self, text: &str) -> Option<Value> {
        let kept = verbatim(text);
        if kept.trim().is_empty() { None } else { self.keep(kept) }
    }

    /// Returns JSON unchanged except for control characters other than white space; `None` if not all of it fits.
    pub(crate) fn json(&mut self, value: &Value) -> Option<Value> {
        let fitting = self.fitting(value);
        self.was_cut |= fitting.is_none();
        fitting
    }

    fn fitting(&mut self, value: &Value) -> Option<Value> {
        if !self.take("null,".len()) {
            return None;
        }
        Some(match value {
            Value::String(text) => Value::String(self.text(text)?),
            Value::Array(values) => {
                values.iter().map(|value| self.fitting(value)).collect::<Option<Vec<_>>>()?.into()
            }
            Value::Object(fields) => {
                let mut field = |(name, value): (&String, &Value)| {
                    self.take("\"\":".len()).then_some(())?;
                    Some((self.text(name)?, self.fitting(value)?))
                };
                Value::Object(fields.iter().map(&mut field).collect::<Option<_>>()?)
            }
            other => other.clone(),
        })
    }

    fn text(&mut self, text: &str) -> Option<String> {
        let text = verbatim(text);
        (text.len() <= self.longest && self.take(text.chars().map(written).sum())).then_some(text)
    }

    fn keep(&mut self, mut text: String) -> Option<Value> {
        let mut length = text.len() + text.bytes().filter(|byte| is_escaped(*byte)).count();
        // Most texts fit: only one that does not is examined character by character.
        if length > self.left || text.len() > self.longest {
            length = 0;
            let end = text.char_indices().find(|(at, c)| {
                length += written(*c);
                length > self.left || at + c.len_utf8() > self.longest
            });
            if let Some((end, _)) = end {
                self.was_cut = true;
                text.truncate(end);
                text.truncate(text.trim_end().len());
            }
        }
        // With quotes and a comma, so that very many short texts reach the limit, too.
        self.take(length + "\"\",".len());
        if text.is_empty() { None } else { Some(Value::String(text)) }
    }
}

fn verbatim(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t' | '\r')).collect()
}

/// The number of bytes of a character in JSON.
fn written(c: char) -> usize {
    c.len_utf8() + usize::from(u8::try_from(c).is_ok_and(is_escaped))
}

/// Whether a single-byte character is escaped by a backslash in JSON.
fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | b'\n' | b'\t' | b'\r')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_without_content_is_nothing() {
        assert_eq!(Budget::new(9).legible(" a\u{0} "), Some(json!("a")));
        assert_eq!(Budget::new(9).legible(" \u{0} \n"), None);
        assert_eq!(Budget::new(99).verbatim(" \u{1b} \n"), None);
        assert_eq!(Budget::new(99).verbatim("<p>\u{1b}a\n b "), Some(json!("<p>a\n b ")));
    }

    #[test]
    fn what_does_not_fit_is_cut_or_left_out() {
        let mut budget = Budget::new(6);
        assert_eq!(budget.legible("abcdefgh"), Some(json!("abcdef")));
        assert!(budget.is_full() && budget.take_cut() && !budget.take_cut());
        assert_eq!(budget.legible("abc"), None);
        let mut budget = Budget::new(99);
        assert_eq!(budget.legible("abc"), Some(json!("abc")));
        assert!(!budget.take_cut());
        assert_eq!(Budget::new(6).legible("\"a\"\"\"\""), Some(json!("\"a\"")));
        assert_eq!(
            Budget::new(99).json(&json!({"a": ["b\u{7}\n\tc ", null, 1], "a ": 2})),
            Some(json!({"a": ["b\n\tc ", null, 1], "a ": 2}))
        );
        assert_eq!(Budget::new(9).json(&json!({"a": ["b", 1]})), None);
    }
}
