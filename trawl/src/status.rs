//! `trawl status` and `trawl wait`: the fleet's crawls.

use std::sync::Arc;
use std::time::Duration;

use trawl_backends::redis::{self, RedisFrontier};
use trawl_cli::{Fail, Global, Outcome, Progress, count};
use trawl_common::crawl::Books;
use trawl_common::exit::Exit;
use trawl_common::names::CrawlId;
use trawl_common::ports::Frontier;
use trawl_common::settings::duration;

use crate::books;

const LOOK: Duration = Duration::from_millis(250);

/// Which crawls to show.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this crawl
    crawl: Option<CrawlId>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
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
        let frontier = connect(&global).await?;
        let shown = match &self.crawl {
            Some(id) => vec![find(&*frontier, id).await?],
            None => frontier.crawls().await?,
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
        let frontier = connect(&global).await?;
        let ended = wait(&*frontier, &self.crawl);
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

async fn connect(global: &Global) -> Result<Arc<dyn Frontier>, Fail> {
    let settings = Global::load(&global.source())?;
    let redis = redis::connect(&settings.redis).await?;
    Ok(Arc::new(RedisFrontier::new(redis, settings.recovery.patience)))
}

async fn find(frontier: &dyn Frontier, id: &CrawlId) -> Result<Books, Fail> {
    let books = frontier.books(id).await?;
    books.ok_or_else(|| Fail::usage(format!("no crawl {id}: `trawl status` lists them")))
}

async fn wait(frontier: &dyn Frontier, id: &CrawlId) -> Result<Books, Fail> {
    let line = Progress::new();
    loop {
        let books = find(frontier, id).await?;
        if books.status.is_over() {
            line.clear();
            return Ok(books);
        }
        line.say(format!("{} of {} URLs ended", count(books.counts.ended()), count(books.counts.admitted)));
        tokio::time::sleep(LOOK).await;
    }
}
