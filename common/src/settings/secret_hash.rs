//! Secrets of which the settings hold only a hash.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordHasher, PasswordVerifier};

/// Minimum length of a secret; shorter ones could be guessed (NIST SP 800-63B-4, 3.1.1.2).
const MIN_LENGTH: usize = 15;
/// Maximum length; nobody types or sends a longer secret.
const MAX_LENGTH: usize = 1024;
/// The start of every hash.
const BEGINNING: &str = "$argon2id$";
/// The memory needed to compute a hash, in KiB: at least OWASP's minimum, and at most what a small machine can
/// spare.
const MEMORY: std::ops::RangeInclusive<u32> = 7 * 1024..=256 * 1024;
/// Number of passes over that memory.
const PASSES: std::ops::RangeInclusive<u32> = 1..=16;

/// The argon2id hash of a secret, as a PHC string.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretHash(Arc<str>);

/// The error for a text that is no such hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no hash that `trawl console hash` prints: {BEGINNING}v=19$m=...,t=...,p=...$salt$hash")]
pub struct NoHash;

/// The error for a text that is not fit to be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret has {MIN_LENGTH} to {MAX_LENGTH} characters: `openssl rand -hex 32` prints one")]
pub struct WeakSecret;

impl SecretHash {
    /// Hashes a secret, without the white space around it. It takes some 20 ms and 19 MiB.
    pub fn from_secret(secret: &str) -> Result<Self, WeakSecret> {
        let secret = secret.trim();
        if !(MIN_LENGTH..=MAX_LENGTH).contains(&secret.chars().count()) {
            return Err(WeakSecret);
        }
        let hash = Argon2::default().hash_password_with_salt(secret.as_bytes(), &rand::random::<[u8; 16]>());
        hash.map(|hash| Self(hash.to_string().into())).map_err(|_| WeakSecret)
    }

    /// Returns whether it is the hash of this secret. It takes as long as computing one.
    pub fn is_of(&self, secret: &str) -> bool {
        let secret = secret.trim();
        secret.len() <= 4 * MAX_LENGTH
            && Argon2::default().verify_password(secret.as_bytes(), &*self.0).is_ok()
    }

    /// Returns whether a text is meant to be a hash.
    pub(super) fn is_meant(text: &str) -> bool {
        text.starts_with("$argon2")
    }

    /// Parses a hash from a file, if it takes a reasonable amount of work to compute.
    pub(super) fn read(text: &str) -> Result<Self, NoHash> {
        let hash = PasswordHash::new(text).map_err(|_| NoHash)?;
        let params = Params::try_from(&hash).map_err(|_| NoHash)?;
        let is_fair = MEMORY.contains(&params.m_cost()) && PASSES.contains(&params.t_cost());
        let is_whole = hash.salt.is_some() && hash.hash.is_some() && params.p_cost() <= 16;
        // A missing parameter would be taken for the reader's default.
        let is_whole = is_whole && hash.version.is_some() && hash.params.iter().next().is_some();
        match text.starts_with(BEGINNING) && is_fair && is_whole {
            true => Ok(Self(text.into())),
            false => Err(NoHash),
        }
    }

    /// Returns the hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "correct horse battery staple";

    #[test]
    fn a_hash_is_of_its_secret_alone_and_another_each_time() {
        let hash = SecretHash::from_secret(&format!("{SECRET}\n")).unwrap();
        assert!(hash.is_of(SECRET) && hash.is_of(&format!(" {SECRET} ")));
        assert!(!hash.is_of("correct horse battery stable") && !hash.is_of("") && !hash.is_of(hash.as_str()));
        assert!(!hash.as_str().contains("horse"));
        assert_ne!(SecretHash::from_secret(SECRET).unwrap().as_str(), hash.as_str());
        assert!(SecretHash::read(hash.as_str()).unwrap() == hash);
    }

    #[test]
    fn what_could_be_guessed_is_not_hashed() {
        for weak in ["", "   ", "hunter2", "fourteen chars", &"x".repeat(MAX_LENGTH + 1)] {
            assert!(SecretHash::from_secret(weak) == Err(WeakSecret), "{weak}");
        }
    }

    #[test]
    fn what_takes_too_little_or_too_much_work_is_no_hash() {
        let good =
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY$5h8pXuI/m3ZPmNZ2g7nxQwhGC2J0nWeMXCfYrRqOq5o";
        assert!(SecretHash::read(good).is_ok());
        for (part, other) in [
            ("m=19456", "m=1024"),
            ("m=19456", "m=4194304"),
            ("t=2", "t=1000000"),
            ("p=1", "p=255"),
            ("argon2id", "argon2d"),
            ("$5h8pXuI/m3ZPmNZ2g7nxQwhGC2J0nWeMXCfYrRqOq5o", ""),
            ("$v=19$m=19456,t=2,p=1", ""),
        ] {
            assert!(SecretHash::read(&good.replace(part, other)).is_err(), "{other}");
        }
    }
}
