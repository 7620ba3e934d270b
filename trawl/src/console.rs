//! `trawl console`: web pages of the fleet. `trawl console hash`: the hash of a token, for the settings.

use std::io::{BufRead, IsTerminal};

use trawl_cli::{Fail, Global, Outcome};
use trawl_common::exit::Exit;
use trawl_common::settings::SecretHash;

use crate::api::{self, Served};

/// The command-line arguments of `trawl console`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct Args {
    #[command(subcommand)]
    instead: Option<Instead>,
    #[command(flatten)]
    serve: api::Args,
}

#[derive(clap::Subcommand)]
enum Instead {
    /// Print the hash of a token, to be written into `api.viewers` or `api.operators` in its place. The token is asked
    /// for, or read from standard input
    Hash,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        match self.instead {
            None => self.serve.run(Served::Console, global).await,
            Some(Instead::Hash) => hash(),
        }
    }
}

fn hash() -> Outcome {
    let secret = secret().map_err(|error| Fail::run(format!("cannot read the token: {error}")))?;
    let hash = SecretHash::from_secret(&secret).map_err(Fail::usage)?;
    anstream::println!("{}", hash.as_str());
    Ok(Exit::Ok)
}

/// Reads a token: typed at a terminal without echo, or the first line of standard input.
fn secret() -> std::io::Result<String> {
    if std::io::stdin().is_terminal() {
        return rpassword::prompt_password("Token: ");
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line)
}
