//! `trawl config`: what the settings are, once all sources are merged.

use anstream::println;
use trawl_cli::{Fail, Global, Outcome, mistakes};
use trawl_common::exit::Exit;

/// What to do with the settings.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print the settings in force, as TOML, without passwords
    Show,
    /// Check the settings and say nothing if they are right
    Check,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Outcome {
        let settings = global.source().load().map_err(mistakes::of_settings)?;
        if let Action::Show = self.action {
            println!("{}", toml::to_string(&settings).map_err(Fail::run)?);
        }
        Ok(Exit::Ok)
    }
}
