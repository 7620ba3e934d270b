//! The command `worker`: runs until it is asked to stop.

use std::process::ExitCode;

use clap::Parser;
use trawl_backends::fleet;
use trawl_cli::{Fail, Global, Outcome, Signals};
use trawl_common::exit::Exit;
use trawl_common::names::WorkerId;
use trawl_common::spider::folder::Folder;

use crate::{StartError, run};

/// A worker's own flags.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Fetch N pages at once
    #[arg(long, value_name = "N")]
    concurrency: Option<u16>,
}

/// Take URLs from the queues, fetch and extract them, until asked to stop
#[derive(Parser)]
#[command(name = "worker", version)]
struct Program {
    #[command(flatten)]
    args: Args,
    #[command(flatten)]
    global: Global,
}

/// The program `worker`, by its own name; `trawl worker` is the same.
pub fn main() -> ExitCode {
    let Program { args, global } = Program::parse();
    trawl_cli::main("worker", args.run(global))
}

impl Args {
    /// Reads the settings, connects, and works until SIGINT or SIGTERM.
    pub async fn run(self, global: Global) -> Outcome {
        let mut source = global.source();
        if let Some(concurrency) = self.concurrency {
            source.set("worker.concurrency", concurrency);
        }
        let settings = Global::load(&source)?;
        if settings.fetch.contact.is_none() {
            tracing::warn!("no fetch.contact is set: hosts cannot tell you that you trouble them");
        }
        let signals = Signals::listen().map_err(Fail::run)?;
        let id = WorkerId::of_this_machine();
        let ports = tokio::select! {
            () = signals.stop().cancelled() => return Ok(Exit::Ok),
            connected = fleet::connect(&settings, &id) => connected?,
        };
        let folder = Folder::of(&settings);
        run(ports, settings, folder, id, signals.stop().clone()).await.map_err(fail)?;
        Ok(Exit::Ok)
    }
}

fn fail(error: StartError) -> Fail {
    match error {
        StartError::Port(error) => error.into(),
        StartError::Spider(_) => Fail::usage(error),
        StartError::Threads(_) => Fail::run(error),
    }
}
