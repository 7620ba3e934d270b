//! The hash that represents a URL.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::as_text::as_text;

/// The first 128 bits of the SHA-256 of a canonical URL; any language can compute it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// Returns the fingerprint of a text.
    pub fn from_text(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// Returns the fingerprint of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let digest = Sha256::digest(bytes);
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Self(first)
    }

    /// Returns its first 64 bits as a signed number, big-endian, which a packed dedup stores for a URL.
    pub fn short(self) -> i64 {
        (u128::from_be_bytes(self.0) >> 64) as i64
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;
    /// Parses 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal);
        number.map(|number| Self(number.to_be_bytes())).ok_or(InvalidFingerprint)
    }
}

as_text!(Fingerprint);

/// The error for a text that is no [`Fingerprint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 32 hexadecimal digits")]
pub struct InvalidFingerprint;

impl fmt::Display for Fingerprint {
    /// Writes 32 lower-case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
