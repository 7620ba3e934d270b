//! `trawl task`: tasks for spiders' handlers.

mod cancel;
mod list;
mod retry;
mod show;
mod submit;

use clap::Subcommand;
use trawl_cli::{Global, Outcome};

use crate::backend::{Backend, Subcommands};

pub(crate) type Args = Subcommands<Command>;

/// The subcommands of `trawl task`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Submit tasks, in a crawl that ends when all of them have; print its id
    Submit(submit::Args),
    /// List tasks that wait, run, are put aside or failed
    List(list::Args),
    /// Show where a task is, why it failed, and its recipe
    Show(show::Args),
    /// Have tasks that failed run again, with no failure counted
    Retry(retry::Args),
    /// End tasks that wait or run: their programs are ended, and their crawls go on
    Cancel(cancel::Args),
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        match self.command {
            Command::Submit(args) => args.run(&Backend::open(&global, &self.place).await?).await,
            Command::List(args) => args.run(&Backend::look(&global, &self.place).await?).await,
            Command::Show(args) => args.run(&Backend::look(&global, &self.place).await?).await,
            Command::Retry(args) => args.run(&Backend::open(&global, &self.place).await?).await,
            Command::Cancel(args) => args.run(&Backend::open(&global, &self.place).await?).await,
        }
    }
}
