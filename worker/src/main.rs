//! The program `worker`.

use std::process::ExitCode;

fn main() -> ExitCode {
    trawl_handlers::exec::run_if_called().unwrap_or_else(trawl_worker::cli::main)
}
