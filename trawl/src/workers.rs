//! `trawl workers`: the live workers.

use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::explain;

use crate::backend::{Backend, Where};
use crate::stats;

/// The command-line arguments of `trawl workers`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only those of this machine; without one the exit code is 1: for health checks
    #[arg(long)]
    here: bool,
    /// Print one JSON object a worker
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::look(&global, &Where::default()).await?;
        let mut workers = backend.stats.workers().await?;
        if self.here {
            workers.retain(|state| state.worker.is_of_this_machine());
        }
        if self.here && workers.is_empty() {
            return Err(Fail::run("no worker lives on this machine"));
        }
        match self.json {
            true => workers.iter().for_each(print_json),
            false if workers.is_empty() => backend.say("no worker lives: start one with `worker`"),
            false => {
                stats::print_workers(&workers);
                explain::outdated(&workers).iter().for_each(|outdated| anstream::println!("\n{outdated}"));
            }
        }
        Ok(Exit::Ok)
    }
}
