//! Texts that must not be shown.

use crate::as_text::hidden;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates the secret `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, only for the request.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

hidden!(Secret);
