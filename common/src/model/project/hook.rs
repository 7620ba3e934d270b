//! The calls by which GitHub, Gitea and Gogs say that somebody has pushed to a repository.

use data_encoding::HEXLOWER_PERMISSIVE;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;

use super::{Branch, SealingKey};
use crate::as_text::hidden;
use crate::names::ProjectName;
use crate::time::UnixMs;

/// The secret with which a repository's server signs its calls for one project: 64 hexadecimal digits, made of the key
/// that seals secrets. A project that was forgotten and made anew has another. It is shown in no log and no debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct HookSecret(String);

impl HookSecret {
    /// Returns the secret of a project that was made at that time.
    pub fn new(key: &SealingKey, project: &ProjectName, created: UnixMs) -> Self {
        let digest = mac(key.bytes(), format!("trawl hook 1: {project} {}", created.0).as_bytes());
        Self(HEXLOWER_PERMISSIVE.encode(&digest.finalize().into_bytes()))
    }

    /// Returns the secret itself, only for people to give it to the server of a repository.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the signature of a body, as Gitea and Gogs send it.
    pub fn sign(&self, body: &[u8]) -> String {
        HEXLOWER_PERMISSIVE.encode(&mac(self.0.as_bytes(), body).finalize().into_bytes())
    }

    /// Returns whether this is the signature of a body: the hexadecimal digits of its HMAC-SHA256, which GitHub puts after
    /// `sha256=`. It takes the same time for every wrong one.
    pub fn has_signed(&self, body: &[u8], signature: &str) -> bool {
        let digits = signature.strip_prefix("sha256=").unwrap_or(signature);
        let Ok(signature) = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()) else { return false };
        mac(self.0.as_bytes(), body).verify_slice(&signature).is_ok()
    }
}

fn mac(key: &[u8], text: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length is one");
    mac.update(text);
    mac
}

hidden!(HookSecret);

/// The error for a body that says nothing of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no push: have the server send pushes, as application/json")]
pub struct NoPush;

/// Returns whether the body of a call says that this branch was pushed to.
///
/// # Errors
/// Fails if it is no call about a push.
pub fn push(body: &[u8], branch: &Branch) -> Result<bool, NoPush> {
    #[derive(Deserialize)]
    struct Push {
        r#ref: String,
    }
    let Push { r#ref } = serde_json::from_slice(body).map_err(|_| NoPush)?;
    Ok(r#ref.strip_prefix("refs/heads/") == Some(branch.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(digit: char, project: &str, created: u64) -> HookSecret {
        let key = digit.to_string().repeat(64).parse().unwrap();
        HookSecret::new(&key, &project.parse().unwrap(), UnixMs(created))
    }

    #[test]
    fn a_signature_counts_for_its_body_and_its_project_alone() {
        let (own, body) = (secret('1', "shop", 1), b"{\"ref\": \"refs/heads/main\"}");
        let signature = own.sign(body);
        assert!(own.has_signed(body, &signature));
        assert!(own.has_signed(body, &format!("sha256={signature}")));
        assert!(own.has_signed(body, &signature.to_uppercase()));
        for other in [secret('2', "shop", 1), secret('1', "news", 1), secret('1', "shop", 2)] {
            assert!(!other.has_signed(body, &signature));
        }
        assert!(!own.has_signed(b"{}", &signature));
        for wrong in ["", "sha256=", "sha1=00", &signature[..62], &format!("{signature}00"), "x"] {
            assert!(!own.has_signed(body, wrong), "{wrong}");
        }
        assert_eq!(format!("{own:?}"), "***");
    }

    #[test]
    fn a_push_to_another_branch_is_one_and_anything_else_is_none() {
        let main = "main".parse().unwrap();
        assert_eq!(push(br#"{"ref": "refs/heads/main", "after": "1"}"#, &main), Ok(true));
        for other in [r#"{"ref": "refs/heads/mainly"}"#, r#"{"ref": "refs/tags/main"}"#, r#"{"ref": "main"}"#]
        {
            assert_eq!(push(other.as_bytes(), &main), Ok(false));
        }
        for none in ["", "payload=%7B%7D", "{}", "[]", "{\"ref\": 7}"] {
            assert_eq!(push(none.as_bytes(), &main), Err(NoPush), "{none}");
        }
    }
}
