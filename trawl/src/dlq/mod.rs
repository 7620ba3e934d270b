//! `trawl dlq`: URLs and tasks that failed or expired. Listing them removes none.

mod filter;
mod list;
mod replay;
mod show;

use clap::Subcommand;
use trawl_cli::{Global, Outcome, counted};

pub(crate) use self::list::note_as_json;
use crate::backend::{Backend, Subcommands};

pub(crate) type Args = Subcommands<Command>;

/// The subcommands of `trawl dlq`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List URLs and tasks that failed, or count them by reason and host
    List(list::Args),
    /// Show all that is known of the failure of one URL or task, with its recipe
    Show(show::Args),
    /// Send URLs and tasks again, with no failure counted; those of a crawl that is over in a crawl of their own
    Replay(replay::Args),
    /// Take URLs and tasks out of the list for good; the crawls' counters stay
    Purge(replay::Args),
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        match self.command {
            Command::List(args) => args.run(&Backend::look(&global, &self.place).await?).await,
            Command::Show(args) => args.run(&Backend::look(&global, &self.place).await?).await,
            Command::Replay(args) => args.replay(&Backend::open(&global, &self.place).await?).await,
            Command::Purge(args) => args.purge(&Backend::open(&global, &self.place).await?).await,
        }
    }
}

/// `1 dead letter`, `1,234 dead letters`.
fn dead_letters(number: u64) -> String {
    counted(number, "dead letter")
}
