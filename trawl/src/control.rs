//! `trawl pause`, `resume` and `cancel`.

use trawl_cli::{CrawlArg, Fail, Global, Outcome, count, print_json};
use trawl_common::exit::Exit;

use crate::backend::{Backend, Where};

/// The command-line arguments of `trawl pause`, `resume` and `cancel`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The crawl: its id, the beginning of it, or `latest`
    crawl: CrawlArg,
    /// Print the crawl's stats as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

/// The change to make to a crawl.
#[derive(Clone, Copy)]
pub(crate) enum Verb {
    Pause,
    Resume,
    Cancel,
}

impl Args {
    pub(crate) async fn run(self, verb: Verb, global: Global) -> Outcome {
        let backend = Backend::open(&global, &self.place).await?;
        let crawl = backend.crawl(&self.crawl).await?.crawl_ref();
        let done = match verb {
            Verb::Pause => {
                backend.control.pause(&crawl).await?;
                "is paused; `trawl resume` lets it go on"
            }
            Verb::Resume => {
                backend.control.resume(&crawl).await?;
                "goes on"
            }
            Verb::Cancel if crawl.is_adhoc() => {
                let id = &crawl.id;
                return Err(Fail::usage(format!(
                    "crawl {id} is what others ask for, and never ends: `trawl pause {id}` holds it, and \
                     `trawl task cancel --crawl {id}` ends its tasks"
                )));
            }
            Verb::Cancel => match backend.cancel(&crawl).await? {
                true => "is cancelled before it began",
                false => "is cancelled",
            },
        };
        let stats = backend.crawl_stats(&crawl.id).await?;
        let (pending, cancelled) = (count(stats.pending), count(stats.counts.cancelled));
        backend.say(format_args!("crawl {} {done}: {pending} pending, {cancelled} cancelled", crawl.id));
        if self.json {
            print_json(&stats);
        }
        Ok(Exit::Ok)
    }
}
