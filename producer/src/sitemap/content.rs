//! The text of one element or line while it is being assembled.

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::BytesRef;
use trawl_common::text::printable;

use super::entry::{Broken, Flaw};

/// A text of limited length, built piece by piece in a reused buffer.
pub(super) struct Content {
    text: String,
    flaw: Option<Flaw>,
    max_bytes: usize,
}

impl Content {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { text: String::new(), flaw: None, max_bytes }
    }

    /// Starts another text.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.flaw = None;
    }

    /// Appends text unchanged.
    pub(super) fn push(&mut self, piece: &str) {
        if self.text.len() + piece.len() <= self.max_bytes {
            self.text.push_str(piece);
            return;
        }
        if self.text.len() < Broken::MAX_SHOWN_BYTES {
            self.text.push_str(&printable(piece.trim_start(), Broken::MAX_SHOWN_BYTES));
        }
        self.flaw.get_or_insert(Flaw::TooLong(self.max_bytes));
    }

    /// Appends the expansion of `&name;`: a character by number, or one of XML's five entities.
    pub(super) fn push_reference(&mut self, name: &str) {
        if let Some(character) = resolve_predefined_entity(name) {
            self.push(character);
        } else if let Ok(Some(character)) = BytesRef::new(name).resolve_char_ref() {
            self.push(character.encode_utf8(&mut [0; 4]));
        } else {
            self.push("&");
            self.push(name);
            self.push(";");
            self.flaw.get_or_insert(Flaw::UnknownEntity(printable(name, 40)));
        }
    }

    /// Appends the value of an attribute. An ampersand that starts no reference is kept as it is.
    pub(super) fn push_escaped(&mut self, value: &str) {
        let mut pieces = value.split('&');
        self.push(pieces.next().unwrap_or_default());
        for piece in pieces {
            match piece.split_once(';') {
                Some((name, rest)) => {
                    self.push_reference(name);
                    self.push(rest);
                }
                None => {
                    self.push("&");
                    self.push(piece);
                }
            }
        }
    }

    /// Returns the text without surrounding whitespace.
    pub(super) fn as_str(&self) -> &str {
        self.text.trim()
    }

    /// Returns the text as a location, or `None` if it is empty.
    pub(super) fn location(&self) -> Option<Result<String, Broken>> {
        let text = self.as_str();
        let undecoded = || text.contains(char::REPLACEMENT_CHARACTER).then_some(Flaw::NotUtf8);
        match self.flaw.clone().or_else(undecoded) {
            Some(flaw) => Some(Err(Broken::new(text, flaw))),
            None if text.is_empty() => None,
            None => Some(Ok(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(value: &str) -> Option<Result<String, Broken>> {
        let mut content = Content::new(100);
        content.push_escaped(value);
        content.location()
    }

    #[test]
    fn references_are_decoded_and_lone_ampersands_kept() {
        assert_eq!(escaped("?a=1&amp;b=2&#38;c=&#x33;"), Some(Ok("?a=1&b=2&c=3".into())));
        assert_eq!(escaped("?a=1&b=2&c"), Some(Ok("?a=1&b=2&c".into())));
        assert_eq!(escaped(" \n "), None);
    }

    #[test]
    fn what_has_no_meaning_is_broken() {
        let flaw = |value: &str| escaped(value).unwrap().unwrap_err().flaw;
        assert_eq!(flaw("a&lol;b").to_string(), "unknown entity `&lol;`");
        assert_eq!(flaw("&#x110000;"), Flaw::UnknownEntity("#x110000".into()));
        assert_eq!(flaw(&"x".repeat(101)).to_string(), "longer than 100 bytes");
        assert_eq!(flaw("a\u{fffd}").to_string(), "not UTF-8");
    }
}
