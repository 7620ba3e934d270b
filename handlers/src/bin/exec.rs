//! The supervisor of handler programs as a program of its own, for tests and for programs that embed the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    trawl_handlers::exec::run_if_called().unwrap_or_else(|| {
        eprintln!("trawl-handler-exec: only workers call this");
        ExitCode::from(2)
    })
}
