//! `[api]`: the HTTP API, and its callers.

use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::masked::masked;
use super::network::Network;
use super::secret_hash::{NoHash, SecretHash};
use crate::names::CallerName;

/// Minimum length of a token; shorter ones could be guessed.
const MIN_TOKEN: usize = 32;

/// `[api]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Callers that may read, each with a token or its hash.
    #[serde(default)]
    pub viewers: BTreeMap<CallerName, ApiToken>,
    /// Callers that may also make changes.
    #[serde(default)]
    pub operators: BTreeMap<CallerName, ApiToken>,
    /// Proxies that are believed when they report where a request came from.
    #[serde(default)]
    pub trusted_proxies: Vec<Network>,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            viewers: BTreeMap::new(),
            operators: BTreeMap::new(),
            trusted_proxies: Vec::new(),
        }
    }
}

impl Api {
    /// Returns whether two callers have the same token.
    pub(super) fn is_one_token_of_two(&self) -> bool {
        let mut known = HashSet::new();
        !self.viewers.values().chain(self.operators.values()).all(|token| known.insert(token.as_written()))
    }
}

/// The credential of a caller of the HTTP API: a token, or the hash of one. Shown, logged and serialised as `***`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ApiToken(Kept);

/// The form in which the settings have it.
#[derive(Clone, PartialEq, Eq)]
enum Kept {
    Token(Arc<str>),
    Hash(SecretHash),
}

/// The check for a caller's token.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    /// The token itself, only for comparing with what a caller sends.
    Token(&'a str),
    /// A token of this hash.
    Hash(&'a SecretHash),
}

/// The error for a text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// It is too short, or does not fit a header.
    #[error(
        "a token has at least {MIN_TOKEN} characters, none of them a space: `openssl rand -hex 32` prints one"
    )]
    Unfit,
    /// It begins like a hash, but is none.
    #[error(transparent)]
    Hash(#[from] NoHash),
}

impl ApiToken {
    /// Returns the check for a caller's token.
    pub fn proof(&self) -> Proof<'_> {
        match &self.0 {
            Kept::Token(token) => Proof::Token(token),
            Kept::Hash(hash) => Proof::Hash(hash),
        }
    }

    fn as_written(&self) -> &str {
        match &self.0 {
            Kept::Token(token) => token,
            Kept::Hash(hash) => hash.as_str(),
        }
    }
}

impl TryFrom<String> for ApiToken {
    type Error = NoToken;

    fn try_from(text: String) -> Result<Self, NoToken> {
        let token = text.trim();
        if SecretHash::is_meant(token) {
            return Ok(Self(Kept::Hash(SecretHash::read(token)?)));
        }
        let is_token = token.len() >= MIN_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token { Ok(Self(Kept::Token(token.into()))) } else { Err(NoToken::Unfit) }
    }
}

masked!(ApiToken);

#[cfg(test)]
mod tests {
    use crate::settings::{Settings, Source};

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn settings(env: &[(&str, &str)]) -> Result<Settings, String> {
        let env = env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Source { env, ..Source::default() }.load().map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn a_token_is_set_by_the_name_of_its_caller_and_shows_nowhere() {
        let api = settings(&[("TRAWL__API__OPERATORS__SHOP", TOKEN)]).unwrap().api;
        let (name, token) = api.operators.first_key_value().unwrap();
        assert_eq!((name.as_str(), token.as_written()), ("shop", TOKEN));
        let shown = format!("{api:?} {}", serde_json::to_string(&api).unwrap());
        assert!(!shown.contains("0123"), "{shown}");
    }

    #[test]
    fn what_could_be_guessed_or_does_not_fit_a_header_is_no_token() {
        for wrong in ["0123", "0123456789abcdef 0123456789abcdef", "0123456789abcdef0123456789abcde\u{e9}"] {
            let shown = settings(&[("TRAWL__API__VIEWERS__X", wrong)]).unwrap_err();
            assert!(shown.contains("openssl rand") && !shown.contains("0123"), "{shown}");
        }
    }

    #[test]
    fn a_hash_stands_for_a_token_and_shows_nowhere_either() {
        let hash = super::SecretHash::from_secret("correct horse battery staple").unwrap();
        let api = settings(&[("TRAWL__API__VIEWERS__ANNA", hash.as_str())]).unwrap().api;
        assert!(
            matches!(api.viewers.values().next().unwrap().proof(), super::Proof::Hash(kept) if *kept == hash)
        );
        assert!(!format!("{api:?} {}", serde_json::to_string(&api).unwrap()).contains("argon2"));
        let broken = hash.as_str().replace("m=", "n=");
        let shown = settings(&[("TRAWL__API__VIEWERS__ANNA", &broken)]).unwrap_err();
        assert!(shown.contains("trawl console hash") && !shown.contains(&broken), "{shown}");
    }

    #[test]
    fn two_callers_cannot_have_one_token() {
        let both = [("TRAWL__API__VIEWERS__A", TOKEN), ("TRAWL__API__OPERATORS__B", TOKEN)];
        assert!(settings(&both).unwrap_err().contains("the same token"));
    }
}
