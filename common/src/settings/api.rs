//! `[api]`: the HTTP API, and who may call it.

use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::masked::masked;
use crate::names::CallerName;

/// Shorter ones could be guessed.
const LEAST: usize = 32;

/// `[api]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// Where it is served.
    pub listen: SocketAddr,
    /// Who may look, each with a token.
    #[serde(default)]
    pub viewers: BTreeMap<CallerName, ApiToken>,
    /// Who may change things as well.
    #[serde(default)]
    pub operators: BTreeMap<CallerName, ApiToken>,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            viewers: BTreeMap::new(),
            operators: BTreeMap::new(),
        }
    }
}

impl Api {
    /// Whether a token does not tell who calls.
    pub(super) fn is_one_token_of_two(&self) -> bool {
        let mut known = HashSet::new();
        !self.viewers.values().chain(self.operators.values()).all(|token| known.insert(token.reveal()))
    }
}

/// What a caller of the HTTP API proves itself by. Shown, logged and serialised as `***`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ApiToken(Arc<str>);

/// What is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has at least {LEAST} characters, none of them a space: `openssl rand -hex 32` prints one")]
pub struct NoToken;

impl ApiToken {
    /// The token itself: to compare with what a caller sends and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ApiToken {
    type Error = NoToken;

    fn try_from(text: String) -> Result<Self, NoToken> {
        let token = text.trim();
        let is_token = token.len() >= LEAST && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token { Ok(Self(token.into())) } else { Err(NoToken) }
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
        assert_eq!((name.as_str(), token.reveal()), ("shop", TOKEN));
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
    fn two_callers_cannot_have_one_token() {
        let both = [("TRAWL__API__VIEWERS__A", TOKEN), ("TRAWL__API__OPERATORS__B", TOKEN)];
        assert!(settings(&both).unwrap_err().contains("the same token"));
    }
}
