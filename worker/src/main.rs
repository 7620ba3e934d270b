//! The program `worker`.

use std::process::ExitCode;

fn main() -> ExitCode {
    trawl_worker::cli::main()
}
