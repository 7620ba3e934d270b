//! The key that seals the secrets of projects.

use std::str::FromStr;

use data_encoding::HEXLOWER_PERMISSIVE;
use sha2::{Digest, Sha256};

use crate::as_text::hidden;

/// The length of a key in bytes.
const LENGTH: usize = 32;

/// The key that seals the secrets of projects: 64 hexadecimal digits. It is shown in no log and no debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct SealingKey([u8; LENGTH]);

/// The error for a text that is no [`SealingKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("holds no key, which is 64 hexadecimal digits: `openssl rand -hex 32` prints one")]
pub struct NoSealingKey;

impl SealingKey {
    /// Returns its bytes, only for sealing.
    pub(super) fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// Returns the first digits of its digest, by which people tell it from another.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::new().chain_update("trawl sealing key").chain_update(self.0).finalize();
        HEXLOWER_PERMISSIVE.encode(&digest[..4])
    }
}

impl FromStr for SealingKey {
    type Err = NoSealingKey;

    fn from_str(text: &str) -> Result<Self, NoSealingKey> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).map_err(|_| NoSealingKey)?;
        bytes.try_into().map(Self).map_err(|_| NoSealingKey)
    }
}

hidden!(SealingKey);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_digits_and_shows_nowhere() {
        let text = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
        let key: SealingKey = format!("{text}\n").parse().unwrap();
        assert_eq!(format!("{key:?}"), "***");
        assert!(!text.to_lowercase().contains(&key.fingerprint()));
        for wrong in ["", "0011", &"x".repeat(64), &text[..62], &format!("{text}00")] {
            assert_eq!(wrong.parse::<SealingKey>(), Err(NoSealingKey), "{wrong}");
        }
    }
}
