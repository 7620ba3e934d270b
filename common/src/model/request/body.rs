//! The body of a request.

use std::fmt;

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::form::FORM;

/// The bytes sent after the header fields. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Body(Bytes);

impl Body {
    /// Returns the bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the body as text, if it is UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns the type that is sent with a body if its request names none: that of JSON or of a form, if it looks like
    /// one.
    pub fn guess_type(body: &[u8]) -> Option<&'static str> {
        let text = std::str::from_utf8(body).ok()?;
        if text.trim_start().starts_with(['{', '[']) {
            return serde_json::from_str::<IgnoredAny>(text).ok().map(|_| "application/json");
        }
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.~%+$*:[]".contains(c))
        };
        let mut pairs = text.split('&').map(|pair| pair.split_once('='));
        let is_form = pairs.all(|pair| pair.is_some_and(|(name, _)| is_name(name)));
        is_form.then_some(FORM)
    }

    /// Returns whether nothing is sent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

/// Shows only the length, because a body may have passwords in it.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_forms_are_known_by_their_looks_and_nothing_else_is() {
        let (json, form) = (Some("application/json"), Some("application/x-www-form-urlencoded"));
        for (body, expected) in [
            (r#" {"a": [1]}"#, json),
            ("[]", json),
            ("q=hat", form),
            ("q=gr\u{fc}ner Hut&page=1&tags[]=", form),
            ("", None),
            ("hat", None),
            ("q=hat&page", None),
            ("{q=1}", None),
            ("{\"a\": 1", None),
            ("<a b='c'/>", None),
            ("query { shop(id = 1) }", None),
        ] {
            assert_eq!(Body::guess_type(body.as_bytes()), expected, "{body}");
        }
        assert_eq!(Body::guess_type(&[0xff, b'=']), None);
    }
}
