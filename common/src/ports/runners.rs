//! Runners, and what people allow them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Result;
use crate::as_text::{as_text, hidden};
use crate::names::{ProjectName, RunnerName};
use crate::time::UnixMs;

/// Maximum number of runners that are known: anybody who reaches the API may ask for access.
pub const MAX_RUNNERS: usize = 1000;

/// The time after which a runner is forgotten that has no access and asks no more, if there is no room for others.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Knows the runners, and the access of each. Every call is durable when it returns.
#[async_trait]
pub trait Runners: Send + Sync {
    /// Adds a runner that asks for access, or notes that it asked again. Returns the runner of that name, whose key may
    /// be another.
    ///
    /// Fails with `Refused` if [`MAX_RUNNERS`] are known, all of which have access or asked lately.
    async fn ask(&self, name: &RunnerName, key: &KeyDigest) -> Result<Runner>;

    /// Returns a runner; `None` if it is not known.
    async fn runner(&self, name: &RunnerName) -> Result<Option<Runner>>;

    /// Returns all runners, by name.
    async fn runners(&self) -> Result<Vec<Runner>>;

    /// Gives a runner access to a project, in place of what it had. Returns whether the runner is known.
    async fn allow(&self, name: &RunnerName, project: &ProjectName, access: Access) -> Result<bool>;

    /// Takes back a runner's access to a project, or to all projects. Returns whether it had any.
    async fn revoke(&self, name: &RunnerName, project: Option<&ProjectName>) -> Result<bool>;

    /// Forgets a runner, its key and its access. Returns whether it was known.
    async fn forget(&self, name: &RunnerName) -> Result<bool>;
}

/// A runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// Its name.
    pub name: RunnerName,
    /// The digest of its key.
    pub key: KeyDigest,
    /// When it asked first.
    pub since: UnixMs,
    /// When it asked last.
    pub asked: UnixMs,
    /// Its access, by project; to others it has none.
    pub access: BTreeMap<ProjectName, Access>,
}

impl Runner {
    /// Returns whether it may do a project's work.
    pub fn is_assigned(&self, project: &ProjectName) -> bool {
        self.access.get(project) == Some(&Access::Assign)
    }

    /// Returns the projects whose work it may do.
    pub fn assigned(&self) -> impl Iterator<Item = &ProjectName> {
        self.access.iter().filter(|(_, access)| **access == Access::Assign).map(|(project, _)| project)
    }

    /// Returns whether it may be forgotten to make room for another.
    pub fn is_forgettable(&self, now: UnixMs) -> bool {
        self.access.is_empty() && now.since(self.asked) >= FORGOTTEN_AFTER
    }
}

/// The access of a runner to a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Access {
    /// It does the project's work, and hands work to its spiders.
    Assign,
    /// It only hands work to its spiders.
    Submit,
}

/// The key by which a runner shows who it is: 64 hexadecimal digits. It is shown in no log and no debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct RunnerKey(String);

impl RunnerKey {
    /// Returns a new key.
    pub fn generate() -> Self {
        Self(format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>()))
    }

    /// Reads a key; `None` if the text is none.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_key = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_key.then(|| Self(text.to_ascii_lowercase()))
    }

    /// Returns the key itself, only for sending and storing it on the runner's machine.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns its digest.
    pub fn digest(&self) -> KeyDigest {
        KeyDigest(Sha256::digest(self.0.as_bytes()).into())
    }
}

hidden!(RunnerKey);

/// The SHA-256 of a runner's key, which is all that is stored of it: a key is random and too long to be guessed. As text
/// it is 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// Returns its bytes, for a comparison that takes the same time for all.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns its first digits, by which people tell a runner from another that took its name: `1a2b-3c4d`.
    pub fn fingerprint(&self) -> String {
        let [a, b, c, d, ..] = self.0;
        format!("{a:02x}{b:02x}-{c:02x}{d:02x}")
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

impl FromStr for KeyDigest {
    type Err = NoKeyDigest;

    fn from_str(text: &str) -> std::result::Result<Self, NoKeyDigest> {
        let mut bytes = [0; 32];
        let is_long = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        for (at, byte) in bytes.iter_mut().enumerate().filter(|_| is_long) {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| NoKeyDigest)?;
        }
        if is_long { Ok(Self(bytes)) } else { Err(NoKeyDigest) }
    }
}

as_text!(KeyDigest);

/// The error for a text that is no [`KeyDigest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the digest of a runner's key is 64 hexadecimal digits")]
pub struct NoKeyDigest;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_made_and_shows_nowhere() {
        let key = RunnerKey::generate();
        assert_eq!(RunnerKey::read(&format!(" {}\n", key.reveal())), Some(key.clone()));
        assert_eq!(format!("{key:?}"), "***");
        assert_ne!(key.digest(), RunnerKey::generate().digest());
        for wrong in ["", "1234", &"x".repeat(64)] {
            assert_eq!(RunnerKey::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_digest_is_read_as_it_was_written() {
        let digest = RunnerKey::generate().digest();
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!(digest.to_string().starts_with(&digest.fingerprint().replace('-', "")));
        for wrong in ["", "12", &"é".repeat(32), &"+1".repeat(32)] {
            assert!(wrong.parse::<KeyDigest>().is_err(), "{wrong}");
        }
    }
}
