//! Where something stands in a file, and what is wrong there.

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

/// A text in which line and column of an offset can be found.
pub struct Places<'a> {
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl<'a> Places<'a> {
    /// The places of `text`.
    pub fn of(text: &'a str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
        Self { text, lines: std::iter::once(0).chain(ends).collect() }
    }

    /// The place where `span` begins, a range of bytes.
    pub fn place(&self, span: &Range<usize>) -> Place {
        // Spans begin at borders of characters; what is found at the end may lie beyond it.
        let at = span.start.min(self.text.len());
        let line = self.lines.partition_point(|begin| *begin <= at);
        let before = String::from_utf8_lossy(&self.text.as_bytes()[self.lines[line - 1]..at]);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Place { line: number(line), column: number(before.chars().count() + 1) }
    }
}

/// A value and where it stands; nowhere, if it is not from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sited<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub place: Option<Place>,
}

impl<T> Sited<T> {
    /// A value that is not from a file.
    pub fn nowhere(value: impl Into<T>) -> Self {
        Self { value: value.into(), place: None }
    }
}

/// One thing that is wrong in the file of a spider or of settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Mistake {
    /// Where; nowhere, if it is not about one place.
    pub place: Option<Place>,
    /// What is wrong, for people, with the way out.
    pub what: String,
}

impl Mistake {
    /// A mistake that is in no file.
    pub fn nowhere(what: impl fmt::Display) -> Self {
        Self { place: None, what: what.to_string() }
    }

    /// A mistake in a value.
    pub fn at<T>(value: &Sited<T>, what: impl fmt::Display) -> Self {
        Self { place: value.place, what: what.to_string() }
    }
}
