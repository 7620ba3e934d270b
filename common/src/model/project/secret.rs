//! The secret of a project.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::as_text::hidden;
use crate::handler::once::MAX_ARGUMENT_BYTES;

/// Maximum size of a secret in bytes: programs are given it as one argument.
pub const MAX_SECRET_BYTES: usize = MAX_ARGUMENT_BYTES;

/// A JSON object with the secrets of a project. It is shown in no log and no debug output; serialised, as for a runner
/// that may read it, it is in the clear.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct ProjectSecret(Map<String, Value>);

/// The reason why something cannot be a secret, which it does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProjectSecret {
    /// It is no JSON object.
    #[error("a secret is a JSON object, as {{\"TOKEN\": \"…\"}}")]
    NoObject,
    /// It is too long.
    #[error("a secret has at most 128 KB")]
    TooLong,
}

impl ProjectSecret {
    /// Reads a secret from JSON.
    ///
    /// # Errors
    /// Fails if the text is no object, or too long.
    pub fn from_json(text: &[u8]) -> Result<Self, NoProjectSecret> {
        if text.len() > MAX_SECRET_BYTES {
            return Err(NoProjectSecret::TooLong);
        }
        let object: Map<String, Value> =
            serde_json::from_slice(text).map_err(|_| NoProjectSecret::NoObject)?;
        object.try_into()
    }

    /// Returns the secret as JSON, only for sealing.
    pub(super) fn to_json(&self) -> String {
        Value::from(self.0.clone()).to_string()
    }

    /// Returns the JSON of the secret with the keys of `own` as well, which is a JSON object; where both have a key, that
    /// of `own` stands.
    ///
    /// # Errors
    /// Fails if both together are too long.
    pub fn with_own(&self, own: &str) -> Result<String, NoProjectSecret> {
        let own: Map<String, Value> = serde_json::from_str(own).map_err(|_| NoProjectSecret::NoObject)?;
        let mut all = self.0.clone();
        all.extend(own);
        let text = Value::from(all).to_string();
        if text.len() <= MAX_SECRET_BYTES { Ok(text) } else { Err(NoProjectSecret::TooLong) }
    }
}

impl TryFrom<Map<String, Value>> for ProjectSecret {
    type Error = NoProjectSecret;

    fn try_from(object: Map<String, Value>) -> Result<Self, NoProjectSecret> {
        let secret = Self(object);
        // Written anew, it may be longer than it came.
        if secret.to_json().len() <= MAX_SECRET_BYTES { Ok(secret) } else { Err(NoProjectSecret::TooLong) }
    }
}

impl From<ProjectSecret> for Map<String, Value> {
    fn from(secret: ProjectSecret) -> Self {
        secret.0
    }
}

hidden!(ProjectSecret);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_an_object_of_bounded_size_and_shows_nowhere() {
        let secret = ProjectSecret::from_json(br#"{"TOKEN": "s3cret"}"#).unwrap();
        assert_eq!(format!("{secret:?}"), "***");
        for wrong in ["", "[]", "7", "\"s3cret\"", "{\"TOKEN\": s3cret}"] {
            let error = ProjectSecret::from_json(wrong.as_bytes()).unwrap_err();
            assert_eq!(error, NoProjectSecret::NoObject, "{wrong}");
            assert!(!error.to_string().contains("s3cret"));
        }
        let long = format!("{{\"TOKEN\": \"{}\"}}", "x".repeat(MAX_SECRET_BYTES));
        assert_eq!(ProjectSecret::from_json(long.as_bytes()), Err(NoProjectSecret::TooLong));
    }

    #[test]
    fn a_key_of_the_spiders_own_secret_stands() {
        let secret = ProjectSecret::from_json(br#"{"DB": "theirs", "TOKEN": 1}"#).unwrap();
        let both: Value = serde_json::from_str(&secret.with_own(r#"{"DB": "own"}"#).unwrap()).unwrap();
        assert_eq!(both, serde_json::json!({ "DB": "own", "TOKEN": 1 }));
        let long = format!("{{\"X\": \"{}\"}}", "x".repeat(MAX_SECRET_BYTES - 10));
        assert_eq!(secret.with_own(&long), Err(NoProjectSecret::TooLong));
    }
}
