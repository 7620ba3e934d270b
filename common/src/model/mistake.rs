//! Mistakes in TOML files, and their places.

use std::fmt;
use std::ops::Range;

/// A line and a column of a file, each from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A text in which the line and column of an offset can be found.
pub struct Places<'a> {
    text: &'a str,
    /// The offset at which each line begins.
    lines: Vec<usize>,
    /// Number of characters before each block, so that finding a column in a long line does not scan all of it.
    blocks: Vec<usize>,
}

/// Number of bytes of a block.
const BLOCK: usize = 1024;

impl<'a> Places<'a> {
    /// Indexes the places of `text`.
    pub fn from_text(text: &'a str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
        let blocks = text.as_bytes().chunks(BLOCK).scan(0, |count, block| {
            let before = *count;
            *count += characters(block);
            Some(before)
        });
        Self { text, lines: std::iter::once(0).chain(ends).collect(), blocks: blocks.collect() }
    }

    /// Returns the place where `span`, a range of bytes, begins.
    pub fn place(&self, span: &Range<usize>) -> Place {
        // Spans begin at character boundaries, but a span at the end may lie beyond it.
        let at = span.start.min(self.text.len());
        let line = self.lines.partition_point(|begin| *begin <= at);
        let column = self.characters_before(at) - self.characters_before(self.lines[line - 1]) + 1;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Place { line: number(line), column: number(column) }
    }

    /// Returns the number of characters that begin before this byte.
    fn characters_before(&self, at: usize) -> usize {
        let block = at / BLOCK;
        let rest = &self.text.as_bytes()[(block * BLOCK).min(at)..at];
        match self.blocks.get(block) {
            Some(before) => before + characters(rest),
            // The offset is at the end of a last block that is full.
            None => self.text.chars().count(),
        }
    }
}

/// Returns the number of characters that begin in these bytes of a text.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte as i8) >= -64).count()
}

/// A value and its place in a file, if it is from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sited<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub place: Option<Place>,
}

impl<T> Sited<T> {
    /// Creates a value that is not from a file.
    pub fn nowhere(value: impl Into<T>) -> Self {
        Self { value: value.into(), place: None }
    }
}

/// A mistake in the file of a spider or of settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Mistake {
    /// The place; `None` if it is not about one place.
    pub place: Option<Place>,
    /// A description for people, with the way to correct it.
    pub what: String,
}

impl Mistake {
    /// Creates a mistake without a place.
    pub fn nowhere(what: impl fmt::Display) -> Self {
        Self { place: None, what: what.to_string() }
    }

    /// Creates a mistake in a value.
    pub fn at<T>(value: &Sited<T>, what: impl fmt::Display) -> Self {
        Self { place: value.place, what: what.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_counts_the_characters_of_its_line_wherever_blocks_end() {
        let line = "aä€😀".repeat(BLOCK / 5);
        for text in [format!("{line}\n{line}\n"), "a".repeat(2 * BLOCK), "ä".repeat(BLOCK), String::new()] {
            let places = Places::from_text(&text);
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let before = &text[..at];
                let begin = before.rfind('\n').map_or(0, |end| end + 1);
                let column = before[begin..].chars().count() + 1;
                let line = before.matches('\n').count() + 1;
                let expected = Place { line: line as u32, column: column as u32 };
                assert_eq!(places.place(&(at..at)), expected, "{at}");
            }
        }
    }
}
