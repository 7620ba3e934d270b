//! The key that makes submitting a job idempotent.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};

/// Maximum length of a key, in bytes.
const MAX_BYTES: usize = 255;

/// A text that the submitter of a job chooses. Submitting again with the same key returns the job that was created
/// the first time. 1 to 255 visible ASCII characters, as in the header `Idempotency-Key` of HTTP APIs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IdempotencyKey(String);

/// The error for a text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key has 1 to {MAX_BYTES} visible ASCII characters")]
pub struct InvalidIdempotencyKey;

impl FromStr for IdempotencyKey {
    type Err = InvalidIdempotencyKey;
    fn from_str(text: &str) -> Result<Self, InvalidIdempotencyKey> {
        let fits = (1..=MAX_BYTES).contains(&text.len());
        match fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidIdempotencyKey),
        }
    }
}

text!(IdempotencyKey);
as_text!(IdempotencyKey);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_ascii_of_bounded_length() {
        assert!("8e03978e-40d5-43dd-bc93-6894a57f9324".parse::<IdempotencyKey>().is_ok());
        for bad in ["", "a b", "ä", "a\n", &"x".repeat(256)] {
            assert_eq!(bad.parse::<IdempotencyKey>(), Err(InvalidIdempotencyKey), "{bad:?}");
        }
    }
}
