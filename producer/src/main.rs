//! The program `producer`.

use std::process::ExitCode;

fn main() -> ExitCode {
    trawl_producer::cli::main()
}
