//! `trawl config`: the settings merged from all sources.

use anstream::println;
use serde_json::json;
use trawl_cli::{Fail, Global, Outcome, mistakes, print_json};
use trawl_common::exit::Exit;
use trawl_common::settings::{Settings, Webhook};
use trawl_common::spider::folder::environment;

/// The command-line arguments of `trawl config`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print the settings in force, as TOML, without passwords
    Show {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the settings and say nothing if they are right
    Check {
        /// Print what is wrong as one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Outcome {
        match (global.source().load(), self.action) {
            (Ok(settings), Action::Show { json: true }) => print_json(&settings),
            (Ok(settings), Action::Show { json: false }) => {
                warn(&settings);
                println!("{}", toml::to_string(&settings).map_err(Fail::run)?);
            }
            (Ok(_), Action::Check { json: true }) => print_json(&json!({ "mistakes": [] })),
            (Ok(settings), Action::Check { json: false }) => warn(&settings),
            (Err(invalid), Action::Check { json: true }) => {
                let mistakes: Vec<_> = invalid.mistakes.iter().map(mistakes::as_json).collect();
                print_json(&json!({ "file": invalid.path, "mistakes": mistakes }));
                return Ok(Exit::Usage);
            }
            (Err(invalid), _) => return Err(mistakes::of_settings(invalid)),
        }
        Ok(Exit::Ok)
    }
}

fn warn(settings: &Settings) {
    if let Some(nameless) = settings.nameless() {
        anstream::eprintln!("warning: {nameless}");
    }
    for Webhook { url, secret, .. } in &settings.webhooks {
        if let Err(error) = secret.reveal(environment) {
            anstream::eprintln!(
                "warning: webhooks: {url}: secret: {error}: no worker starts here without it"
            );
        }
    }
}
