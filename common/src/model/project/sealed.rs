//! Secrets as they are stored: sealed by XChaCha20-Poly1305, each under a nonce of its own and for one project.

use std::fmt;
use std::str::FromStr;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use data_encoding::BASE64;

use super::{MAX_SECRET_BYTES, ProjectSecret, SealingKey};
use crate::names::ProjectName;

/// The first part of a sealed secret, which is the version of its form.
const FORM: &str = "1";

/// Size of a nonce in bytes.
const NONCE: usize = 24;

/// Size of the tag in bytes, by which a change is found.
const TAG: usize = 16;

/// The secret of a project, sealed: `1.<fingerprint of the key>.<base64 of nonce and ciphertext>`. The project's name is
/// authenticated with it, so that it opens for no other project.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// The fingerprint of the key.
    key: String,
    /// The nonce, and the ciphertext with its tag.
    bytes: Vec<u8>,
}

/// The error for a text that is no [`SealedSecret`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no sealed secret")]
pub struct NotSealed;

/// The reason why a secret cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// Another key has sealed it.
    #[error(
        "the key {sealed} has sealed it, and secrets.key_file holds {own}: set that key, or the secret anew"
    )]
    OtherKey {
        /// The fingerprint of the key that has sealed it.
        sealed: String,
        /// The fingerprint of the key here.
        own: String,
    },
    /// It was changed, or sealed for another project.
    #[error("it was changed where it is stored, or sealed for another project: set it anew")]
    Changed,
}

impl SealedSecret {
    /// Seals the secret of a project.
    pub fn seal(secret: &ProjectSecret, project: &ProjectName, key: &SealingKey) -> Self {
        let nonce: [u8; NONCE] = rand::random();
        let (text, name) = (secret.to_json(), associated(project));
        let payload = Payload { msg: text.as_bytes(), aad: name.as_bytes() };
        let sealed = cipher(key).encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("a secret is shorter than the cipher's limit");
        Self { key: key.fingerprint(), bytes: [&nonce[..], &sealed].concat() }
    }

    /// Opens the secret of a project.
    ///
    /// # Errors
    /// Fails if another key has sealed it, if it is another project's, or if it was changed.
    pub fn open(&self, project: &ProjectName, key: &SealingKey) -> Result<ProjectSecret, NotOpened> {
        let own = key.fingerprint();
        if self.key != own {
            return Err(NotOpened::OtherKey { sealed: self.key.clone(), own });
        }
        let (nonce, sealed) = self.bytes.split_at_checked(NONCE).ok_or(NotOpened::Changed)?;
        let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| NotOpened::Changed)?;
        let name = associated(project);
        let payload = Payload { msg: sealed, aad: name.as_bytes() };
        let text = cipher(key).decrypt(&XNonce::from(nonce), payload).map_err(|_| NotOpened::Changed)?;
        ProjectSecret::from_json(&text).map_err(|_| NotOpened::Changed)
    }
}

fn cipher(key: &SealingKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&Key::from(*key.bytes()))
}

/// Returns the text that is authenticated with the secret of a project.
fn associated(project: &ProjectName) -> String {
    format!("trawl project secret {FORM}: {project}")
}

impl fmt::Display for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM}.{}.{}", self.key, BASE64.encode(&self.bytes))
    }
}

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sealed by {}", self.key)
    }
}

impl FromStr for SealedSecret {
    type Err = NotSealed;

    fn from_str(text: &str) -> Result<Self, NotSealed> {
        let mut parts = text.splitn(3, '.');
        let (Some(FORM), Some(key), Some(bytes)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NotSealed);
        };
        let is_fingerprint = key.len() == 8 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_fingerprint || bytes.len() > 2 * MAX_SECRET_BYTES {
            return Err(NotSealed);
        }
        let bytes = BASE64.decode(bytes.as_bytes()).map_err(|_| NotSealed)?;
        let is_whole = bytes.len() >= NONCE + TAG;
        is_whole.then(|| Self { key: key.to_owned(), bytes }).ok_or(NotSealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digit: char) -> SealingKey {
        digit.to_string().repeat(64).parse().unwrap()
    }

    fn project(name: &str) -> ProjectName {
        name.parse().unwrap()
    }

    fn secret() -> ProjectSecret {
        ProjectSecret::from_json(br#"{"TOKEN": "s3cret"}"#).unwrap()
    }

    #[test]
    fn a_secret_opens_for_its_project_under_its_key_and_shows_nowhere_before() {
        let sealed = SealedSecret::seal(&secret(), &project("shop"), &key('1'));
        let stored = sealed.to_string();
        assert!(!stored.contains("s3cret") && !format!("{sealed:?}").contains("s3cret"));
        assert_eq!(stored.parse::<SealedSecret>().unwrap().open(&project("shop"), &key('1')), Ok(secret()));
        let again = SealedSecret::seal(&secret(), &project("shop"), &key('1'));
        assert_ne!(stored, again.to_string(), "each has a nonce of its own");
    }

    #[test]
    fn a_secret_opens_under_no_other_key_and_for_no_other_project() {
        let sealed = SealedSecret::seal(&secret(), &project("shop"), &key('1'));
        let wrong_key = sealed.open(&project("shop"), &key('2')).unwrap_err();
        assert!(matches!(&wrong_key, NotOpened::OtherKey { own, .. } if *own == key('2').fingerprint()));
        assert_eq!(sealed.open(&project("news"), &key('1')), Err(NotOpened::Changed), "it was copied");
        let renamed = SealedSecret { key: key('2').fingerprint(), ..sealed };
        assert_eq!(renamed.open(&project("shop"), &key('2')), Err(NotOpened::Changed));
    }

    #[test]
    fn a_secret_of_which_one_bit_was_changed_does_not_open() {
        let sealed = SealedSecret::seal(&secret(), &project("shop"), &key('1'));
        for at in 0..sealed.bytes.len() {
            for bit in 0..8 {
                let mut bytes = sealed.bytes.clone();
                bytes[at] ^= 1 << bit;
                let flipped = SealedSecret { bytes, key: sealed.key.clone() };
                assert_eq!(flipped.open(&project("shop"), &key('1')), Err(NotOpened::Changed), "{at} {bit}");
            }
        }
        for cut in 0..sealed.bytes.len() {
            let cut = SealedSecret { bytes: sealed.bytes[..cut].to_owned(), key: sealed.key.clone() };
            assert_eq!(cut.open(&project("shop"), &key('1')), Err(NotOpened::Changed));
        }
    }

    #[test]
    fn a_text_that_is_none_is_no_sealed_secret() {
        let sealed = SealedSecret::seal(&secret(), &project("shop"), &key('1')).to_string();
        for wrong in ["", "1", "1.", "1.00112233", "1.00112233.", "2.00112233.AAAA", "1.00112233.AAAA"] {
            assert_eq!(wrong.parse::<SealedSecret>(), Err(NotSealed), "{wrong}");
        }
        for wrong in [&sealed[..sealed.len() - 1], &sealed.replacen("1.", "1.x", 1), &format!("{sealed}!")] {
            assert_eq!(wrong.parse::<SealedSecret>(), Err(NotSealed), "{wrong}");
        }
    }
}
