//! `trawl spider`: writes, checks and tries spider files.

mod attempt;
mod attempt_task;
mod check;
mod deployed;
pub(crate) mod examine;
pub(crate) mod new;
mod recorded;
pub(crate) mod reextract;
pub(crate) mod shell;
mod show;
mod test;
mod trial;

use anstream::println;
use clap::Subcommand;
pub(crate) use examine::load;
use trawl_cli::{ArgumentFlags, Fail, Global, Outcome, SpiderArg, print_json};
use trawl_common::exit::Exit;
use trawl_common::names::SpiderName;
use trawl_common::settings::Settings;
use trawl_common::spider::Origin;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::folder::Folder;

/// The command-line arguments of `trawl spider`.
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
        #[command(flatten)]
        arguments: ArgumentFlags,
        /// Print one JSON object a file
        #[arg(long)]
        json: bool,
    },
    /// Fetch one page, or read a saved one, and show what a spider makes of it; robots.txt is not asked. Or have its
    /// program do a task
    Try(attempt::Args),
    /// Compare what a spider makes of recorded pages with what it made of them, for instance in CI; or record pages
    Test(test::Args),
    /// Write an example with comments to the folder of spiders
    New {
        /// The spider's name
        name: SpiderName,
        /// Print where it is as JSON
        #[arg(long)]
        json: bool,
    },
    /// Deploy spiders for jobs: every worker finds them, without a file
    Push(deployed::Push),
    /// List what is deployed, the latest version of each project last
    Versions(deployed::Versions),
    /// Remove a version of a project, or all of them
    Remove(deployed::Remove),
    /// List the spiders in the folder of spiders
    List {
        /// Print one JSON object a spider, as `check` does
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let settings = || global.load(&global.source());
        match self.command {
            Command::Push(args) => args.run(&global).await,
            Command::Versions(args) => args.run(&global).await,
            Command::Remove(args) => args.run(&global).await,
            Command::Check { spiders, arguments, json } => {
                check::run(&spiders, &arguments.arguments()?, json, &settings()?)
            }
            Command::Try(args) => args.run(settings()?).await,
            Command::Test(args) => args.run(settings()?).await,
            Command::New { name, json } => new::run(&name, json, &settings()?, &global),
            Command::List { json } => list(json, &settings()?, &global),
        }
    }
}

fn list(json: bool, settings: &Settings, global: &Global) -> Outcome {
    let folder = Folder::new(settings);
    let shown = settings.spiders_dir.display();
    let names = folder.names().map_err(|error| Fail::run(format!("{shown}: {error}")))?;
    if names.is_empty() {
        global.say(format_args!("no spiders in {shown}: `trawl spider new NAME` writes one"));
    }
    for name in names {
        let file = folder.file(&name);
        let examined = examine::examine(&file, &Arguments::default(), settings, Origin::Local);
        if json {
            print_json(&check::as_json(&file, examined.as_ref(), settings));
        } else {
            let state = examined.map_or_else(|error| error.to_string(), |examined| examined.in_one_line());
            println!("{:<24} {state}", name.as_str());
        }
    }
    Ok(Exit::Ok)
}
