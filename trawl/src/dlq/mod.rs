//! `trawl dlq`: URLs that failed or expired. Looking at them takes none away.

mod filter;
mod list;
mod replay;
mod show;

use std::io::{BufRead, IsTerminal};

use clap::Subcommand;
use filter::Filter;
use trawl_cli::{Fail, Global, Outcome, count};
use trawl_common::frontier::dead_letter::Note;
use trawl_common::frontier::outcome::Reason;
use trawl_common::names::CrawlRef;
use trawl_common::web::url::CanonicalUrl;

use crate::backend::{Backend, Where};

/// What to do with dead letters.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    place: Where,
}

#[derive(Subcommand)]
enum Command {
    /// List URLs that failed, or count them by reason and host
    List(list::Args),
    /// Show all that is known of one URL's failure
    Show(show::Args),
    /// Send URLs again, with no failure counted; those of a crawl that is over in a crawl of their own
    Replay(replay::Args),
    /// Take URLs out of the list for good; the crawls' counters stay
    Purge(replay::Args),
}

/// A URL that failed, of some crawl, or a text that is none.
pub(crate) struct Failed {
    pub(crate) crawl: CrawlRef,
    pub(crate) url: String,
    pub(crate) note: Note,
}

impl Failed {
    /// The URL, unless it is none, or came in a message that was none.
    pub(crate) fn canonical(&self) -> Option<CanonicalUrl> {
        let is_invalid = self.note.cause.reason == Reason::Invalid;
        self.url.parse().ok().filter(|_| !is_invalid)
    }

    /// Its host; `-` if it is no URL.
    fn host(&self) -> String {
        self.canonical().map_or_else(|| "-".to_owned(), |url| url.host().to_string())
    }
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
fn letters(number: u64) -> String {
    format!("{} dead letter{}", count(number), if number == 1 { "" } else { "s" })
}

/// Asks before something is done to every dead letter there is. Without a terminal nobody can answer.
fn confirm(what: &str, filter: &Filter, yes: bool) -> Result<(), Fail> {
    if yes || !filter.is_empty() {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Fail::usage(format!("{what} every dead letter? Say --yes, or choose some (--help)")));
    }
    anstream::eprint!("{what} every dead letter there is? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read.map(|_| answer.trim().eq_ignore_ascii_case("y")) {
        Ok(true) => Ok(()),
        _ => Err(Fail::usage("nothing was done")),
    }
}
