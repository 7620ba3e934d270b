//! Where something stands in a file, and what is wrong there.

use std::fmt;

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

/// One thing that is wrong in a spider file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Mistake {
    /// Where; nowhere, if it is not about one place.
    pub place: Option<Place>,
    /// What is wrong, for people, with the way out.
    pub what: String,
}

impl Mistake {
    /// A mistake in a value.
    pub fn at<T>(value: &Sited<T>, what: impl fmt::Display) -> Self {
        Self { place: value.place, what: what.to_string() }
    }
}
