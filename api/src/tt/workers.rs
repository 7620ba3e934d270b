//! Drones that register.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use trawl_common::names::RunnerName;
use trawl_common::ports::{Runner, RunnerKey};

use super::answer::{Answer, done, read};
use super::{TaskTracker, caller, numbers};
use crate::extract::Segment;
use crate::problem::{Kind, Problem};

/// Maximum length of a name that is made of an alias: it is followed by digits of the key if another has it.
const MAX_NAME: usize = 40;

#[derive(Deserialize)]
struct NewWorker {
    #[serde(default)]
    alias: String,
}

#[derive(Serialize)]
struct WorkerContent {
    worker: Worker,
}

#[derive(Serialize)]
struct Worker {
    id: u64,
    /// In seconds since 1970.
    created: u64,
    alias: RunnerName,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    paused: bool,
}

impl Worker {
    fn new(runner: &Runner, secret: Option<String>) -> Self {
        let Runner { name, key, since, .. } = runner;
        let (id, alias) = (numbers::of_worker(key), name.clone());
        Self { id, created: since.0 / 1000, alias, secret, paused: false }
    }
}

/// Makes a runner that asks for access. Its name is its alias, in small letters, and with digits of its key if another
/// runner has that name.
pub(super) async fn create(State(tt): State<Arc<TaskTracker>>, request: Request) -> Answer {
    let (head, body) = request.into_parts();
    tt.callers.check_stranger(&head)?;
    let NewWorker { alias } = read(Request::from_parts(head, body)).await?;
    let (runners, key) = (&tt.api.backend.runners, RunnerKey::generate());
    let mut name = named(&alias);
    if runners.runner(&name).await?.is_some() {
        name = format!("{name}-{}", &key.digest().to_string()[..6]).parse().map_err(Problem::malformed)?;
    }
    let runner = runners.ask(&name, &key.digest()).await?;
    if runner.key != key.digest() {
        return Err(Problem::new(Kind::Conflict, format_args!("another worker is called {name}")).into());
    }
    done(WorkerContent { worker: Worker::new(&runner, Some(caller::secret(&key))) })
}

/// Shows a drone itself.
pub(super) async fn show(
    State(tt): State<Arc<TaskTracker>>,
    Segment(number): Segment<u64>,
    head: Parts,
) -> Answer {
    let runner = tt.caller(&head).await?;
    match numbers::of_worker(&runner.key) == number {
        true => done(WorkerContent { worker: Worker::new(&runner, None) }),
        false => Err(Problem::not_found("a worker is shown to itself alone").into()),
    }
}

/// Returns the name of a runner with this alias.
fn named(alias: &str) -> RunnerName {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '_' | '-' | '.') => c,
        _ => '-',
    };
    let plain: String = alias.trim().chars().take(MAX_NAME).map(plain).collect();
    plain.trim_start_matches('.').parse().unwrap_or_else(|_| "drone".parse().expect("it is a name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_any_alias() {
        for (alias, name) in [
            ("worker alias", "worker-alias"),
            (" Büro.7 ", "b-ro.7"),
            ("", "drone"),
            ("..", "drone"),
            (&"x".repeat(200), &"x".repeat(40)),
        ] {
            assert_eq!(named(alias).as_str(), name, "{alias}");
        }
    }
}
