//! The text of a spider's file, line by line.

use trawl_common::text::printable;

use crate::answers::Mistake;
use crate::shown::Number;

/// Maximum number of lines shown.
const MAX_LINES: usize = 5_000;
/// Maximum length of a line shown, in bytes.
const MAX_LINE_BYTES: usize = 2048;

/// The lines of a text.
pub(crate) struct Source {
    pub(crate) lines: Vec<Line>,
    /// The number of lines not shown.
    pub(crate) left_out: Number,
}

/// A line.
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) is_wrong: bool,
}

impl Source {
    /// Splits a text with these mistakes into lines.
    pub(crate) fn new(text: &str, mistakes: &[Mistake]) -> Self {
        let line = |(index, text): (usize, &str)| Line {
            // Invisible characters could make a text look like another.
            text: printable(text, MAX_LINE_BYTES),
            is_wrong: mistakes.iter().any(|mistake| mistake.line == Some(index + 1)),
        };
        let left_out = text.lines().count().saturating_sub(MAX_LINES) as u64;
        let lines = text.lines().enumerate().take(MAX_LINES).map(line).collect();
        Self { lines, left_out: Number(left_out) }
    }
}
