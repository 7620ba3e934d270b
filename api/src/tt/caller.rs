//! The callers: drones are runners, known by the number and the secret that the API gave them.

use axum::http::request::Parts;
use data_encoding::{BASE64, HEXLOWER};
use moka::sync::Cache;
use trawl_common::names::RunnerName;
use trawl_common::ports::{KeyDigest, Runner, RunnerKey, Runners};

use super::numbers;
use crate::limits::{Caller, Rates};
use crate::peer::Peer;
use crate::problem::{Kind, Problem};

/// The header with the number of a worker.
const WORKER: &str = "x-worker-id";

/// The header with its secret.
const SECRET: &str = "x-secret";

/// Maximum number of drones whose names are remembered.
const MAX_REMEMBERED: u64 = 1000;

/// The drones that have called, and the limits on their calls.
pub(super) struct Callers {
    /// Calls with a secret, by runner.
    calls: Rates,
    /// New workers, and calls with an unknown secret, by address.
    strangers: Rates,
    /// The names of drones that have called.
    names: Cache<[u8; 32], RunnerName>,
}

impl Default for Callers {
    fn default() -> Self {
        let names = Cache::new(MAX_REMEMBERED);
        Self { calls: Rates::of_runners(), strangers: Rates::of_tokens(), names }
    }
}

impl Callers {
    /// Counts a call of somebody who is not known.
    pub(super) fn check_stranger(&self, head: &Parts) -> Result<(), Problem> {
        self.strangers.check(&Caller::Address(Peer::of(&head.extensions)))
    }

    /// Returns the drone that calls, with the access that it has now.
    pub(super) async fn known(&self, runners: &dyn Runners, head: &Parts) -> Result<Runner, Problem> {
        let Some(key) = digest(head) else { return Err(self.unknown(head)) };
        let found = match self.names.get(key.as_bytes()) {
            Some(name) => runners.runner(&name).await?.filter(|runner| runner.key == key),
            None => {
                self.check_stranger(head)?;
                runners.runners().await?.into_iter().find(|runner| runner.key == key)
            }
        };
        let Some(runner) = found else {
            self.names.invalidate(key.as_bytes());
            return Err(self.unknown(head));
        };
        self.names.insert(*key.as_bytes(), runner.name.clone());
        // Anybody can make any number of workers.
        if runner.access.is_empty() {
            self.calls.check(&Caller::Address(Peer::of(&head.extensions)))?;
        } else {
            Peer::note_known(&head.extensions);
            self.calls.check(&Caller::Runner(runner.name.clone()))?;
        }
        Ok(runner)
    }

    fn unknown(&self, head: &Parts) -> Problem {
        let none = || Problem::new(Kind::Unauthorized, "no worker has this X-Worker-Id and X-Secret");
        self.check_stranger(head).err().unwrap_or_else(none)
    }
}

/// Returns the digest of the secret of a call, if its number is that of the secret's worker.
fn digest(head: &Parts) -> Option<KeyDigest> {
    let text = |name| head.headers.get(name)?.to_str().ok();
    let number: u64 = text(WORKER)?.parse().ok()?;
    let key = key(text(SECRET)?)?.digest();
    (numbers::of_worker(&key) == number).then_some(key)
}

/// Returns the secret of a drone: its key in task_tracker's form.
pub(super) fn secret(key: &RunnerKey) -> String {
    let bytes = HEXLOWER.decode(key.reveal().as_bytes()).expect("a key is hexadecimal");
    BASE64.encode(&bytes)
}

/// Returns the key of a drone with this secret.
fn key(secret: &str) -> Option<RunnerKey> {
    RunnerKey::read(&HEXLOWER.encode(&BASE64.decode(secret.as_bytes()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_the_key_in_another_form() {
        let own = RunnerKey::generate();
        assert_eq!(key(&secret(&own)), Some(own));
        for wrong in ["", "None", "AAAA", "%%%%"] {
            assert_eq!(key(wrong), None, "{wrong}");
        }
    }
}
