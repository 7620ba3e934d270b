//! `trawl drain`: stops a worker.

use std::fmt;
use std::str::FromStr;

use serde_json::json;
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::names::{InvalidName, WorkerId};
use trawl_common::nearest::listed;
use trawl_common::ports::WorkerState;

use crate::backend::{Backend, Where};

/// The command-line arguments of `trawl drain`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The worker: its id, or the beginning of it
    worker: WorkerArg,
    /// Print the worker's id as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::open(&global, &Where::default()).await?;
        let worker = self.worker.choose(backend.stats.workers().await?)?;
        if !backend.control.drain(&worker).await? {
            return Err(Fail::run(format!("worker {worker} has ended meanwhile")));
        }
        backend.say(format_args!(
            "worker {worker} is asked to end: within seconds it takes no more URLs, and finishes what it has begun"
        ));
        if self.json {
            print_json(&json!({ "worker": worker, "draining": true }));
        }
        Ok(Exit::Ok)
    }
}

/// A worker's id, or a prefix of it.
#[derive(Clone, Debug)]
struct WorkerArg(WorkerId);

impl FromStr for WorkerArg {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        text.parse().map(Self)
    }
}

impl fmt::Display for WorkerArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl WorkerArg {
    /// Returns the one worker that the argument matches.
    fn choose(&self, workers: Vec<WorkerState>) -> Result<WorkerId, Fail> {
        let Self(named) = self;
        let mut begin: Vec<WorkerId> = workers.into_iter().map(|state| state.worker).collect();
        begin.retain(|worker| worker.as_str().starts_with(named.as_str()));
        match begin.iter().find(|worker| *worker == named) {
            Some(worker) => Ok(worker.clone()),
            None if begin.len() > 1 => {
                let ids = listed(begin.iter().map(WorkerId::as_str));
                Err(Fail::usage(format!("several workers begin with `{named}`: {ids}")))
            }
            None => begin.pop().ok_or_else(|| {
                Fail::usage(format!("no worker {named} lives: `trawl workers` lists those that do"))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(worker: &str) -> WorkerState {
        WorkerState::idle(worker.parse().unwrap())
    }

    #[test]
    fn a_worker_is_meant_by_its_id_or_by_a_beginning_that_no_other_has() {
        let workers = ["node-1", "node-12", "other-1"];
        let chosen = |arg: &str| {
            let chosen = arg.parse::<WorkerArg>().unwrap().choose(workers.map(state).into());
            chosen.map(|worker| worker.to_string()).map_err(|fail| fail.message)
        };
        assert_eq!(chosen("node-1"), Ok("node-1".to_owned()));
        assert_eq!(chosen("node-12"), Ok("node-12".to_owned()));
        assert_eq!(chosen("o"), Ok("other-1".to_owned()));
        assert!(chosen("node").unwrap_err().contains("`node-1` and `node-12`"));
        assert!(chosen("none").unwrap_err().contains("no worker none"));
    }
}
