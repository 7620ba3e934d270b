//! The callers: runners are known by their keys.

use std::sync::Arc;

use axum::http::header;
use axum::http::request::Parts;
use subtle::ConstantTimeEq;
use trawl_common::names::RunnerName;
use trawl_common::ports::{KeyDigest, Runner, RunnerKey, Runners};
use trawl_common::relay::{RUNNER, SESSION};

use super::session::Session;
use super::sessions::Sessions;
use crate::limits::{Caller, Rates};
use crate::peer::Peer;
use crate::problem::{Kind, Problem};

/// The limits on calls.
pub(super) struct Callers {
    /// Calls with a key, by runner.
    calls: Rates,
    /// Unknown names and wrong keys, by address.
    strangers: Rates,
}

impl Default for Callers {
    fn default() -> Self {
        Self { calls: Rates::of_runners(), strangers: Rates::of_tokens() }
    }
}

/// A name and a key, as they were sent.
struct Sent {
    name: RunnerName,
    key: KeyDigest,
}

impl Callers {
    /// Returns the runner that asks for access. One that is not known yet becomes known.
    pub(super) async fn ask(&self, runners: &dyn Runners, head: &Parts) -> Result<Runner, Problem> {
        let Sent { name, key } = self.sent(head)?;
        if runners.runner(&name).await?.is_none() {
            self.strangers.check(&Caller::Address(Peer::of(&head.extensions)))?;
        }
        let runner = runners.ask(&name, &key).await?;
        self.check(head, &runner, &key)?;
        Ok(runner)
    }

    /// Returns a runner that has asked for access before.
    pub(super) async fn known(&self, runners: &dyn Runners, head: &Parts) -> Result<Runner, Problem> {
        let Sent { name, key } = self.sent(head)?;
        let Some(runner) = runners.runner(&name).await? else {
            self.strangers.check(&Caller::Address(Peer::of(&head.extensions)))?;
            return Err(Problem::new(
                Kind::Unauthorized,
                format_args!("no runner {name} has asked for access"),
            ));
        };
        self.check(head, &runner, &key)?;
        Ok(runner)
    }

    /// Returns the session in which a runner calls.
    pub(super) fn in_session(&self, sessions: &Sessions, head: &Parts) -> Result<Arc<Session>, Problem> {
        let Sent { name, key } = self.sent(head)?;
        let id = head.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let Some(session) = sessions.of(&name).filter(|session| session.id == id) else {
            self.calls.check(&Caller::Address(Peer::of(&head.extensions)))?;
            return Err(Problem::new(Kind::Conflict, "there is no such session here: join"));
        };
        self.check(head, &session.runner(), &key)?;
        session.touch();
        Ok(session)
    }

    fn sent(&self, head: &Parts) -> Result<Sent, Problem> {
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let key = text(header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        let key = key.and_then(RunnerKey::read);
        match (text(RUNNER).and_then(|name| name.parse().ok()), key) {
            (Some(name), Some(key)) => Ok(Sent { name, key: key.digest() }),
            _ => {
                self.strangers.check(&Caller::Address(Peer::of(&head.extensions)))?;
                Err(Problem::new(Kind::Unauthorized, "only runners call here, with a name and a key"))
            }
        }
    }

    /// Checks that the key is the runner's, and that it does not call too often.
    fn check(&self, head: &Parts, runner: &Runner, key: &KeyDigest) -> Result<(), Problem> {
        if !bool::from(runner.key.as_bytes().ct_eq(key.as_bytes())) {
            self.strangers.check(&Caller::Address(Peer::of(&head.extensions)))?;
            let name = &runner.name;
            let detail = format!(
                "another runner is called {name}: choose another name, or have an operator forget {name}"
            );
            return Err(Problem::new(Kind::Unauthorized, detail));
        }
        // Anybody can ask under any number of names.
        if runner.access.is_empty() {
            return self.calls.check(&Caller::Address(Peer::of(&head.extensions)));
        }
        Peer::note_known(&head.extensions);
        self.calls.check(&Caller::Runner(runner.name.clone()))
    }
}
