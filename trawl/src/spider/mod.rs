//! `trawl spider`: writing spider files, and seeing what is wrong with them and what they give.

mod attempt;
mod check;
mod examine;
mod new;
mod show;
mod summary;

use anstream::println;
use clap::Subcommand;
pub(crate) use examine::load;
use trawl_cli::{Fail, Global, Outcome, SpiderArg};
use trawl_common::exit::Exit;
use trawl_common::names::SpiderName;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;

/// What to do with spiders.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show every mistake in spider files, and what those without do
    Check {
        /// The spiders: their files, or their names
        #[arg(required = true, value_name = "FILE|NAME")]
        spiders: Vec<SpiderArg>,
        /// Print one JSON object a file
        #[arg(long)]
        json: bool,
    },
    /// Fetch one page, or read a saved one, and show what a spider makes of it; robots.txt is not asked
    Try(attempt::Args),
    /// Write an example with comments to the folder of spiders
    New {
        /// The spider's name
        name: SpiderName,
    },
    /// List the spiders in the folder of spiders
    List,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let settings = Global::load(&global.source())?;
        match self.command {
            Command::Check { spiders, json } => check::run(&spiders, json, &settings),
            Command::Try(args) => args.run(settings).await,
            Command::New { name } => new::run(&name, &settings),
            Command::List => list(&settings),
        }
    }
}

fn list(settings: &Settings) -> Outcome {
    let folder = Folder::of(settings);
    let shown = settings.spiders_dir.display();
    let names = folder.names().map_err(|error| Fail::run(format!("{shown}: {error}")))?;
    if names.is_empty() {
        anstream::eprintln!("no spiders in {shown}: `trawl spider new NAME` writes one");
    }
    for name in names {
        let state = match examine::examine(&folder.file(&name), settings) {
            Ok(examined) => summary::line(&examined),
            Err(error) => error.to_string(),
        };
        println!("{:<24} {state}", name.as_str());
    }
    Ok(Exit::Ok)
}
