//! The program `worker`.

use std::process::ExitCode;

use clap::Parser;
use trawl_cli::Global;
use trawl_worker::cli::Args;

/// Take URLs from the queues, fetch and extract them, until asked to stop
#[derive(Parser)]
#[command(name = "worker", version)]
struct Program {
    #[command(flatten)]
    args: Args,
    #[command(flatten)]
    global: Global,
}

fn main() -> ExitCode {
    let Program { args, global } = Program::parse();
    trawl_cli::main("worker", args.run(global))
}
