//! Versions of a project: the files of its spiders, as somebody deployed them.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};
use crate::names::SpiderName;
use crate::text::printable;
use crate::time::UnixMs;

/// Maximum length of a name, in bytes.
const MAX_BYTES: usize = 64;

/// Maximum number of spiders of a version.
const MAX_SPIDERS: usize = 1_000;

/// Maximum size of the files of a version together, in bytes.
const MAX_TEXT: usize = 1024 * 1024;

/// The name of a version: 1 to 64 of `A-Z`, `a-z`, `0-9`, `.`, `_`, `+` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(String);

/// The error for a text that names no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a version: use 1 to {MAX_BYTES} of A-Z, a-z, 0-9, `.`, `_`, `+` and `-`")]
pub struct InvalidVersion(String);

impl Version {
    /// Returns the version named for an instant: `20231114-221320`.
    pub fn of_time(now: UnixMs) -> Self {
        Self(now.stamp())
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;
    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+-".contains(&b));
        match is_plain && (1..=MAX_BYTES).contains(&text.len()) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidVersion(printable(text, MAX_BYTES))),
        }
    }
}

text!(Version);
as_text!(Version);

/// The files of a version's spiders, by name: at least one, and not too much together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpiderFiles(BTreeMap<SpiderName, String>);

/// The error for files that no version may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFiles {
    /// There is no spider in it.
    #[error("there is no spider in it: a version has at least one file NAME.toml")]
    None,
    /// There are too many spiders.
    #[error("{0} spiders are too many for a version: it may have {MAX_SPIDERS}")]
    Spiders(usize),
    /// The files are too large.
    #[error("the files of a version may have {MAX_TEXT} bytes together: these have {0}")]
    Bytes(usize),
}

impl SpiderFiles {
    /// Checks the number and size of the files.
    pub fn new(files: BTreeMap<SpiderName, String>) -> Result<Self, InvalidFiles> {
        match (files.len(), files.values().map(String::len).sum()) {
            (0, _) => Err(InvalidFiles::None),
            (count, _) if count > MAX_SPIDERS => Err(InvalidFiles::Spiders(count)),
            (_, bytes) if bytes > MAX_TEXT => Err(InvalidFiles::Bytes(bytes)),
            _ => Ok(Self(files)),
        }
    }

    /// Iterates over the spiders and their files, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&SpiderName, &str)> {
        self.0.iter().map(|(name, text)| (name, text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_word_that_needs_no_quotes() {
        for good in ["r23", "1.0.0+build-7", "1700000000", "Release_2"] {
            assert_eq!(good.parse::<Version>().unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a/b", "ä", "a:b", "a\n", &"x".repeat(65)] {
            assert!(bad.parse::<Version>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_version_without_spiders_or_with_too_much_is_refused() {
        let files = |count: usize, text: &str| {
            let name = |number| format!("s{number}").parse().unwrap();
            SpiderFiles::new((0..count).map(|number| (name(number), text.to_owned())).collect())
        };
        assert_eq!(files(0, ""), Err(InvalidFiles::None));
        assert_eq!(files(1_001, ""), Err(InvalidFiles::Spiders(1_001)));
        assert_eq!(files(11, &"x".repeat(100_000)), Err(InvalidFiles::Bytes(1_100_000)));
        assert_eq!(files(2, "max_pages = 1").unwrap().iter().count(), 2);
    }
}
