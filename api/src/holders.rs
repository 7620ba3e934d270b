//! The holders of tokens.
//!
//! A token is identified by its SHA-256, which costs nothing to compare. If the settings have only an
//! argon2id hash of a token, its SHA-256 is known once it has been sent: only until then does a request cost
//! the work that such a hash is meant to cost. That work is done on a separate thread, for one caller at a
//! time, and for a few attempts per minute from one address. Once all holders have been seen, nobody can
//! cause it any more.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use trawl_common::names::CallerName;
use trawl_common::settings::{ApiToken, Proof, SecretHash};

use crate::identity::{Identity, Role};
use crate::limits::{Caller, Rates};
use crate::problem::{Kind, Problem};
use crate::threads::on_a_thread_apart;

/// Maximum number of pairs of holders and addresses to remember: more than there are desks.
const MAX_REMEMBERED: usize = 10_000;
/// The time that a caller waits while the tokens of others are checked.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// The holders of all tokens.
pub(crate) struct Holders {
    all: Vec<Arc<Holder>>,
    /// The limits on tokens tried by hand, by address.
    log_ins: Rates,
    /// The holders with hashed tokens that have logged in, each with the address.
    seen: Mutex<HashSet<(CallerName, Caller)>>,
    /// The limits on unknown tokens sent by programs, by address. They do not affect log-ins, nor do log-ins
    /// affect them.
    calls: Rates,
    /// Permits one check of a token at a time.
    place: Semaphore,
}

/// The holder of a token.
pub(crate) struct Holder {
    pub(crate) name: CallerName,
    pub(crate) role: Role,
    /// The hash for checking the token until it is known.
    hash: Option<SecretHash>,
    /// The digest of the token, once it is known. Comparing digests of one length reveals nothing about it.
    digest: OnceLock<Digested>,
}

type Digested = [u8; 32];

/// A token, with the name of its holder if that is sent as well.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) name: Option<String>,
    pub(crate) token: String,
}

impl Holders {
    /// Returns the viewers and operators of the settings.
    pub(crate) fn new<'a>(
        viewers: &'a BTreeMap<CallerName, ApiToken>,
        operators: &'a BTreeMap<CallerName, ApiToken>,
    ) -> Self {
        let holder = |role| {
            move |(name, token): (&'a CallerName, &'a ApiToken)| Arc::new(Holder::new(name, role, token))
        };
        let viewers = viewers.iter().map(holder(Role::Viewer));
        let all = viewers.chain(operators.iter().map(holder(Role::Operator))).collect();
        let (log_ins, calls) = (Rates::of_tokens(), Rates::of_tokens());
        Self { all, log_ins, seen: Mutex::default(), calls, place: Semaphore::new(1) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the holder of a token sent by hand from `peer`. Wrong tokens are limited to a few attempts,
    /// and do not block right ones: a generated token has 32 random characters and cannot be guessed. A token
    /// that people remember could be, so the right one counts as an attempt too, unless its holder has logged
    /// in from there before.
    pub(crate) async fn log_in(
        &self,
        peer: IpAddr,
        credentials: Credentials,
    ) -> Result<Option<Arc<Holder>>, Problem> {
        let peer = Caller::Address(peer).counted();
        let known = self.known(&credentials).cloned();
        if let Some(holder) = known.as_ref().filter(|holder| self.has_seen(holder, &peer)) {
            return Ok(Some(Arc::clone(holder)));
        }
        self.log_ins.check(&peer)?;
        let holder = match known {
            Some(holder) => Some(holder),
            None => self.verify(credentials, || Ok(())).await?,
        };
        if let Some(holder) = &holder {
            self.note_seen(holder, peer);
        }
        Ok(holder)
    }

    /// Whether the right token of `holder` from this address cannot be a guess.
    fn has_seen(&self, holder: &Holder, peer: &Caller) -> bool {
        let seen = || self.seen.lock();
        holder.hash.is_none() || seen().contains(&(holder.name.clone(), peer.clone()))
    }

    fn note_seen(&self, holder: &Holder, peer: Caller) {
        let mut seen = self.seen.lock();
        if seen.len() < MAX_REMEMBERED {
            seen.insert((holder.name.clone(), peer));
        }
    }

    /// Returns the holder of a token sent by a program at `peer`. Unknown tokens are limited to a few
    /// attempts.
    pub(crate) async fn find(
        &self,
        peer: IpAddr,
        credentials: Credentials,
    ) -> Result<Option<Arc<Holder>>, Problem> {
        match self.known(&credentials) {
            Some(holder) => Ok(Some(Arc::clone(holder))),
            None => self.verify(credentials, || self.calls.check(&Caller::Address(peer))).await,
        }
    }

    /// Returns the holder of a known token. Takes the same time for every token.
    fn known(&self, Credentials { name, token }: &Credentials) -> Option<&Arc<Holder>> {
        let sent = digest(token);
        let is_it =
            |holder: &&Arc<Holder>| holder.digest.get().is_some_and(|digest| digest.ct_eq(&sent).into());
        let holder = self.all.iter().filter(is_it).fold(None, |_, holder| Some(holder));
        holder.filter(|holder| holder.is_called(name.as_deref()))
    }

    /// Returns the holder of a token among those whose token is known only by its hash, if `may` allows an
    /// attempt.
    async fn verify(
        &self,
        credentials: Credentials,
        may: impl FnOnce() -> Result<(), Problem>,
    ) -> Result<Option<Arc<Holder>>, Problem> {
        if self.unseen(&credentials).is_empty() {
            return Ok(None);
        }
        let Ok(Ok(_place)) = tokio::time::timeout(QUEUE_TIMEOUT, self.place.acquire()).await else {
            return Err(Problem::new(Kind::Unavailable, "the tokens of others are being checked: try again"));
        };
        // The previous caller may have sent the same token.
        if let Some(holder) = self.known(&credentials) {
            return Ok(Some(Arc::clone(holder)));
        }
        may()?;
        let unseen = self.unseen(&credentials);
        let verify = move || {
            let is_of = |holder: &Arc<Holder>| {
                holder.hash.as_ref().is_some_and(|hash| hash.is_of(&credentials.token))
            };
            let holder = unseen.into_iter().find(is_of)?;
            holder.digest.get_or_init(|| digest(&credentials.token));
            Some(holder)
        };
        Ok(on_a_thread_apart(verify).await)
    }

    /// Returns the holders with unknown tokens that may match.
    fn unseen(&self, credentials: &Credentials) -> Vec<Arc<Holder>> {
        let is_unseen = |holder: &&Arc<Holder>| {
            holder.digest.get().is_none() && holder.is_called(credentials.name.as_deref())
        };
        self.all.iter().filter(is_unseen).cloned().collect()
    }
}

impl Holder {
    /// Returns the identity under which they call.
    pub(crate) fn identity(&self) -> Identity {
        Identity::new(Caller::Named(self.name.clone()), self.role)
    }

    fn new(name: &CallerName, role: Role, token: &ApiToken) -> Self {
        let (hash, digest) = match token.proof() {
            Proof::Token(token) => (None, OnceLock::from(digest(token))),
            Proof::Hash(hash) => (Some(hash.clone()), OnceLock::new()),
        };
        Self { name: name.clone(), role, hash, digest }
    }

    /// Whether this is their name; true if no name is given.
    fn is_called(&self, name: Option<&str>) -> bool {
        name.is_none_or(|name| name == self.name.as_str())
    }
}

fn digest(token: &str) -> Digested {
    Sha256::digest(token.trim()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "correct horse battery staple";
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn callers(name: &str, token: &str) -> BTreeMap<CallerName, ApiToken> {
        [(name.parse().unwrap(), token.to_owned().try_into().unwrap())].into()
    }

    fn holders() -> Holders {
        Holders::new(
            &callers("anna", SecretHash::from_secret(SECRET).unwrap().as_str()),
            &callers("shop", TOKEN),
        )
    }

    fn sent(name: Option<&str>, token: &str) -> Credentials {
        Credentials { name: name.map(str::to_owned), token: token.to_owned() }
    }

    async fn found(holders: &Holders, name: Option<&str>, token: &str) -> Result<Option<String>, u16> {
        let found = holders.find([127, 0, 0, 1].into(), sent(name, token)).await;
        found
            .map(|holder| holder.map(|holder| holder.name.to_string()))
            .map_err(|problem| problem.status().as_u16())
    }

    #[tokio::test]
    async fn a_token_is_found_by_its_hash_and_after_that_at_no_cost() {
        let holders = holders();
        assert_eq!(found(&holders, None, TOKEN).await, Ok(Some("shop".to_owned())));
        assert!(holders.known(&sent(None, SECRET)).is_none());
        assert_eq!(found(&holders, Some("anna"), SECRET).await, Ok(Some("anna".to_owned())));
        assert!(holders.known(&sent(None, SECRET)).is_some());
        assert_eq!(found(&holders, Some("shop"), SECRET).await, Ok(None), "it is not theirs");
        // No hash is left to check a token against; otherwise this would be refused as too many attempts.
        for _ in 0..50 {
            assert_eq!(found(&holders, None, "wrong").await, Ok(None));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_one_address_few_unknown_tokens_are_checked_and_known_ones_go_on() {
        let holders = holders();
        let mut refused = 0;
        for _ in 0..12 {
            refused += u32::from(found(&holders, None, "wrong").await == Err(429));
        }
        assert_eq!(refused, 2);
        assert_eq!(found(&holders, None, TOKEN).await, Ok(Some("shop".to_owned())));
        assert!(
            holders.find([127, 0, 0, 2].into(), sent(None, SECRET)).await.is_err(),
            "another of this machine's"
        );
        let elsewhere = holders.find([192, 0, 2, 2].into(), sent(None, SECRET)).await.ok().flatten();
        assert_eq!(elsewhere.unwrap().name.as_str(), "anna");
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_of_programs_close_no_log_in() {
        let holders = holders();
        for _ in 0..11 {
            let _ = found(&holders, None, "wrong").await;
        }
        assert_eq!(found(&holders, None, "wrong").await, Err(429));
        let entered = holders.log_in([127, 0, 0, 1].into(), sent(None, TOKEN)).await;
        assert_eq!(entered.ok().flatten().unwrap().name.as_str(), "shop");
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_log_ins_stop_no_right_one() {
        let holders = holders();
        let log_in = async |token: &str| {
            let found = holders.log_in([127, 0, 0, 1].into(), sent(None, token)).await;
            found
                .map(|holder| holder.map(|holder| holder.name.to_string()))
                .map_err(|problem| problem.status())
        };
        assert_eq!(log_in(SECRET).await, Ok(Some("anna".to_owned())));
        while log_in("wrong").await.is_ok() {}
        for _ in 0..50 {
            assert_eq!(log_in(TOKEN).await, Ok(Some("shop".to_owned())), "nobody can guess it");
            assert_eq!(log_in(SECRET).await, Ok(Some("anna".to_owned())), "she was here before");
        }
        assert!(log_in("wrong").await.is_err());
        let elsewhere = [192, 0, 2, 2].into();
        while holders.log_in(elsewhere, sent(None, "wrong")).await.is_ok() {}
        let guessed = holders.log_in(elsewhere, sent(None, SECRET)).await;
        assert!(guessed.is_err(), "what people remember is not found by trying");
    }

    #[tokio::test]
    async fn one_token_that_comes_many_times_at_once_is_checked_once() {
        let holders = holders();
        let all = futures::future::join_all((0..30).map(|_| found(&holders, None, SECRET))).await;
        assert!(all.iter().all(|found| *found == Ok(Some("anna".to_owned()))), "{all:?}");
    }
}
