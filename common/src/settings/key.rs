//! The fleet's key, which is never shown.

use std::sync::Arc;

use serde::Deserialize;

use super::masked::masked;

/// Minimum length of a key; shorter ones could be guessed.
const MIN_LENGTH: usize = 32;

/// The secret shared by the processes of one fleet. They sign their messages with it, and so recognise a
/// stranger's. Shown, logged and serialised as `***`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FleetKey(Arc<str>);

/// The error for a text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has at least {MIN_LENGTH} characters: `openssl rand -hex 32` prints one")]
pub struct NoKey;

impl FleetKey {
    /// Returns the key itself, only for signing.
    pub fn reveal(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl TryFrom<String> for FleetKey {
    type Error = NoKey;

    fn try_from(text: String) -> Result<Self, NoKey> {
        let key = text.trim();
        if key.len() < MIN_LENGTH { Err(NoKey) } else { Ok(Self(key.into())) }
    }
}

masked!(FleetKey);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_nowhere_and_is_long_enough_not_to_be_guessed() {
        let text = "0123456789abcdef0123456789abcdef";
        let key = FleetKey::try_from(format!("{text}\n")).unwrap();
        assert_eq!(key.reveal(), text.as_bytes());
        let shown = format!("{key:?} {}", serde_json::to_string(&key).unwrap());
        assert!(!shown.contains("0123"), "{shown}");
        let short = FleetKey::try_from("0123".to_owned()).unwrap_err().to_string();
        assert!(!short.contains("0123") && short.contains("openssl rand"), "{short}");
    }
}
