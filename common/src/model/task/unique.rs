//! The text by which a task is unique.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};

/// Maximum length of the text, in bytes of UTF-8.
const MAX_BYTES: usize = 8 * 1024;

/// A text that the submitter of a task chooses, such as the number of a document: a spider takes in one task with
/// it, however often it is submitted. It is compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Unique(String);

/// The error for a text that cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`unique` has 1 to {MAX_BYTES} bytes, not {0}")]
pub struct InvalidUnique(usize);

impl FromStr for Unique {
    type Err = InvalidUnique;
    fn from_str(text: &str) -> Result<Self, InvalidUnique> {
        match text.len() {
            1..=MAX_BYTES => Ok(Self(text.to_owned())),
            bytes => Err(InvalidUnique(bytes)),
        }
    }
}

text!(Unique);
as_text!(Unique);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_or_long_makes_no_tasks_one() {
        assert!("payment 19/2026 ä".parse::<Unique>().is_ok());
        for bad in [String::new(), "x".repeat(MAX_BYTES + 1)] {
            assert_eq!(bad.parse::<Unique>(), Err(InvalidUnique(bad.len())));
        }
    }
}
