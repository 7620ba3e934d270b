//! What runs programs, by itself: for tests, and for whoever embeds the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    trawl_handlers::exec::run_if_called().unwrap_or_else(|| {
        eprintln!("trawl-handler-exec: only workers call this");
        ExitCode::from(2)
    })
}
