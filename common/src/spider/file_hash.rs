//! The hash that identifies the text of a spider's file in a few bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::web::url::Fingerprint;

/// The first 64 bits of the SHA-256 of a spider's file, or of the files of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileHash(u64);

impl FileHash {
    /// Returns the hash of this text.
    pub fn from_text(text: &str) -> Self {
        Self(Fingerprint::from_text(text).short() as u64)
    }
}

/// The error for a text that is not 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the hash of a spider's file: that has 16 hexadecimal digits")]
pub struct InvalidFileHash;

impl FromStr for FileHash {
    type Err = InvalidFileHash;
    fn from_str(text: &str) -> Result<Self, InvalidFileHash> {
        let is_hexadecimal = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal);
        number.map(Self).ok_or(InvalidFileHash)
    }
}

impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

as_text!(FileHash);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = FileHash::from_text("max_pages = 7");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_ne!(FileHash::from_text("max_pages = 8"), hash);
        for bad in ["", "+123456789abcdef", "0123456789abcdef0", "0123456789abcdeg"] {
            assert_eq!(bad.parse::<FileHash>(), Err(InvalidFileHash), "{bad}");
        }
    }
}
