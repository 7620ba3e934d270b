//! `trawl status` and `trawl wait`: crawls and their books.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use serde::Serialize;
use trawl_cli::{Fail, Global, Outcome, Signals, await_end};
use trawl_common::crawl::{Books, HostBooks};
use trawl_common::exit::Exit;
use trawl_common::names::CrawlId;
use trawl_common::settings::duration;

use crate::books;
use crate::desk::{Desk, Where};
use crate::waits;

/// Which crawls to show.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this crawl
    crawl: Option<CrawlId>,
    /// Show the N hosts of the crawl with the most URLs
    #[arg(long, value_name = "N", default_value_t = 10)]
    hosts: usize,
    /// Show it again every TIME [default: 2s], until the crawl has ended
    #[arg(long, value_name = "TIME", value_parser = duration::parse, num_args = 0..=1, default_missing_value = "2s")]
    watch: Option<Duration>,
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
        let desk = Desk::look(&global, &self.place).await?;
        let Some(period) = self.watch else {
            self.show(&desk, None).await?;
            return Ok(Exit::Ok);
        };
        let signals = Signals::listen().map_err(Fail::run)?;
        let mut before = None;
        loop {
            if std::io::stdout().is_terminal() && !self.json {
                // Home, and clear what is below.
                anstream::print!("\x1b[H\x1b[2J");
            }
            let shown = self.show(&desk, before.as_ref()).await?;
            if self.crawl.is_some() && shown.iter().all(|books| books.status.is_over()) {
                return Ok(Exit::Ok);
            }
            before = Some((shown, Instant::now()));
            tokio::select! {
                () = signals.stop().cancelled() => return Ok(Exit::Ok),
                () = tokio::time::sleep(period) => {}
            }
        }
    }

    /// Shows one crawl in full, or each in a line. With what was shown a while ago, the pace is that since then.
    async fn show(&self, desk: &Desk, before: Option<&(Vec<Books>, Instant)>) -> Result<Vec<Books>, Fail> {
        match &self.crawl {
            Some(id) => self.show_one(desk, id, before).await,
            None => self.show_all(desk).await,
        }
    }

    async fn show_one(
        &self,
        desk: &Desk,
        id: &CrawlId,
        before: Option<&(Vec<Books>, Instant)>,
    ) -> Result<Vec<Books>, Fail> {
        let books = desk.books(id).await?;
        let hosts = desk.frontier.hosts(&books.crawl_ref(), self.hosts).await?;
        let waits = waits::of(desk, &books, &hosts).await?;
        if self.json {
            books::print_json(&InFull { books: &books, hosts: &hosts, waits: &waits });
        } else {
            books::print_header();
            books::print_row(&books);
            books::print_pace(&books, pace(&books, before));
            books::print_reasons(&books);
            books::print_hosts(&hosts);
            waits.iter().for_each(|waits| anstream::println!("waits: {waits}"));
        }
        Ok(vec![books])
    }

    async fn show_all(&self, desk: &Desk) -> Result<Vec<Books>, Fail> {
        let all = desk.frontier.crawls().await?;
        if self.json {
            all.iter().for_each(books::print_json);
            return Ok(all);
        }
        if all.is_empty() {
            anstream::eprintln!("no crawl yet: start one with `producer <SITEMAP>`");
        } else {
            books::print_header();
            all.iter().for_each(books::print_row);
        }
        let workers = desk.frontier.workers().await?;
        if !workers.is_empty() {
            books::print_workers(&workers);
        }
        Ok(all)
    }
}

/// A crawl's books, with those by host.
#[derive(Serialize)]
struct InFull<'a> {
    #[serde(flatten)]
    books: &'a Books,
    hosts: &'a [HostBooks],
    /// What keeps its URLs waiting.
    waits: &'a [String],
}

fn pace(books: &Books, before: Option<&(Vec<Books>, Instant)>) -> f64 {
    match before {
        Some((shown, since)) if !books.status.is_over() => {
            let done_before = shown.first().map_or(0, |books| books.counts.done);
            books.counts.done.saturating_sub(done_before) as f64 / since.elapsed().as_secs_f64().max(0.001)
        }
        _ => books::pages_per_second(books),
    }
}

impl WaitArgs {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let desk = Desk::look(&global, &Where::default()).await?;
        desk.books(&self.crawl).await?;
        let line = global.progress();
        let ended = await_end(&*desk.frontier, &self.crawl, &line);
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
