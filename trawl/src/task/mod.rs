//! `trawl task`: tasks for the programs of spiders.

mod failed;
mod show;
mod submit;

use clap::Subcommand;
use trawl_cli::{Global, Outcome};

use crate::backend::{Backend, Where};

/// What to do with tasks.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    place: Where,
}

#[derive(Subcommand)]
enum Command {
    /// Submit tasks, in a crawl that ends when all of them have; print its id
    Submit(submit::Args),
    /// List tasks that failed
    List(failed::List),
    /// Show where a task is, why it failed, and its recipe
    Show(show::Args),
    /// Have tasks that failed run again, with no failure counted
    Retry(failed::Retry),
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        match self.command {
            Command::Submit(args) => args.run(&Backend::open(&global, &self.place).await?).await,
            Command::List(args) => args.run(&Backend::look(&global, &self.place).await?).await,
            Command::Show(args) => args.run(&Backend::look(&global, &self.place).await?).await,
            Command::Retry(args) => args.run(&Backend::open(&global, &self.place).await?).await,
        }
    }
}
