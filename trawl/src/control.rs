//! `trawl pause`, `resume` and `cancel`.

use trawl_cli::{Fail, Global, Outcome, count};
use trawl_common::exit::Exit;
use trawl_common::names::CrawlId;

use crate::desk::{Desk, Where};

/// Which crawl.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The crawl
    crawl: CrawlId,
    #[command(flatten)]
    place: Where,
}

/// What to do to it.
#[derive(Clone, Copy)]
pub(crate) enum Verb {
    Pause,
    Resume,
    Cancel,
}

impl Args {
    pub(crate) async fn run(self, verb: Verb, global: Global) -> Outcome {
        let desk = Desk::open(&global, &self.place).await?;
        let crawl = desk.books(&self.crawl).await?.crawl_ref();
        let done = match verb {
            Verb::Pause => {
                desk.control.pause(&crawl).await?;
                "is paused; `trawl resume` lets it go on"
            }
            Verb::Resume => {
                desk.control.resume(&crawl).await?;
                "goes on"
            }
            Verb::Cancel if crawl.is_adhoc() => {
                return Err(Fail::usage(
                    "the crawl of hand-published URLs never ends: `trawl pause adhoc` holds it",
                ));
            }
            Verb::Cancel => {
                desk.control.cancel(&crawl).await?;
                "is cancelled"
            }
        };
        let books = desk.books(&self.crawl).await?;
        let (pending, cancelled) = (count(books.pending), count(books.counts.cancelled));
        anstream::eprintln!("crawl {} {done}: {pending} URLs pending, {cancelled} cancelled", crawl.id);
        Ok(Exit::Ok)
    }
}
