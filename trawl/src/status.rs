//! `trawl status` and `trawl wait`: crawls and their books.

use std::time::Duration;

use trawl_cli::{Global, Outcome, await_end};
use trawl_common::exit::Exit;
use trawl_common::names::CrawlId;
use trawl_common::settings::duration;

use crate::books;
use crate::desk::{Desk, Where};

/// Which crawls to show.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this crawl
    crawl: Option<CrawlId>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

/// Which crawl to wait for.
#[derive(clap::Args)]
pub(crate) struct WaitArgs {
    /// The crawl
    crawl: CrawlId,
    /// Give up after this time, with exit code 124
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Print the crawl's books as JSON when it has ended
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let desk = Desk::open(&global, &self.place).await?;
        let shown = match &self.crawl {
            Some(id) => vec![desk.books(id).await?],
            None => desk.frontier.crawls().await?,
        };
        if self.json {
            shown.iter().for_each(books::print_json);
        } else if shown.is_empty() {
            anstream::eprintln!("no crawl yet: start one with `producer <SITEMAP>`");
        } else {
            books::print_header();
            shown.iter().for_each(books::print_row);
        }
        Ok(Exit::Ok)
    }
}

impl WaitArgs {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let desk = Desk::open(&global, &Where::default()).await?;
        desk.books(&self.crawl).await?;
        let ended = await_end(&*desk.frontier, &self.crawl);
        let ended = match self.timeout {
            None => ended.await?,
            Some(timeout) => match tokio::time::timeout(timeout, ended).await {
                Ok(ended) => ended?,
                Err(_) => return Ok(Exit::TimedOut),
            },
        };
        if self.json {
            books::print_json(&ended);
        }
        Ok(books::exit(&ended))
    }
}
