//! `trawl config`: what the settings are, once all sources are merged.

use anstream::println;
use trawl_cli::{Fail, Global, Outcome, mistakes};
use trawl_common::exit::Exit;

/// What is wrong with a user agent that tells no name.
pub(crate) const NAMELESS: &str =
    "the user agent tells no name for robots.txt, so what is said there to `trawl` is obeyed";

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
        if settings.politeness.robots && settings.fetch.robots_name().is_none() {
            anstream::eprintln!("warning: {NAMELESS}: set `fetch.robots_name`");
        }
        if let Action::Show = self.action {
            println!("{}", toml::to_string(&settings).map_err(Fail::run)?);
        }
        Ok(Exit::Ok)
    }
}
