//! The program `producer`.

use std::process::ExitCode;

use clap::Parser;
use trawl_cli::Global;
use trawl_producer::cli::Args;

/// Read sitemaps and put every URL that is new into its queue
#[derive(Parser)]
#[command(name = "producer", version)]
struct Program {
    #[command(flatten)]
    args: Args,
    #[command(flatten)]
    global: Global,
}

fn main() -> ExitCode {
    let Program { args, global } = Program::parse();
    trawl_cli::main("producer", args.run(global))
}
