//! Asking before all dead letters are touched.

use std::io::{BufRead, IsTerminal};

use trawl_cli::Fail;

use super::filter::Filter;

/// Asks before something is done to every dead letter there is. Without a terminal nobody can answer.
pub(super) fn confirm(what: &str, filter: &Filter, yes: bool) -> Result<(), Fail> {
    if yes || !filter.is_empty() {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Fail::usage(format!("{what} every dead letter? Say --yes, or choose some (--help)")));
    }
    anstream::eprint!("{what} every dead letter there is? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read.map(|_| answer.trim().eq_ignore_ascii_case("y")) {
        Ok(true) => Ok(()),
        _ => Err(Fail::usage("nothing was done")),
    }
}
