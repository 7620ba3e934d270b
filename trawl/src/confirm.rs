//! Asks for confirmation before something irreversible.

use std::io::{BufRead, IsTerminal};

use trawl_cli::Fail;

/// Asks `question`, unless `yes` answers it. Fails if there is no terminal to ask on.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<(), Fail> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Fail::usage(format!("{question} Say --yes, or choose less (--help)")));
    }
    anstream::eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read.map(|_| answer.trim().eq_ignore_ascii_case("y")) {
        Ok(true) => Ok(()),
        _ => Err(Fail::usage("nothing was done")),
    }
}
