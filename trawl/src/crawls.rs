//! `trawl crawls forget`: forgets crawls that are over, and their jobs.

use clap::Subcommand;
use serde_json::json;
use trawl_cli::{CrawlArg, Fail, Global, Outcome, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::crawl::CrawlStats;

use crate::backend::{Backend, Subcommands};
use crate::confirm::confirm;

pub(crate) type Args = Subcommands<Command>;

/// The subcommands of `trawl crawls`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Forget crawls that are over: their stats, dead letters and jobs. Their items stay, and what their spiders have
    /// seen
    Forget(Forget),
}

/// The command-line arguments of `trawl crawls forget`.
#[derive(clap::Args)]
pub(crate) struct Forget {
    /// The crawls: their ids, the beginnings of them, or `latest`
    #[arg(required = true)]
    crawl: Vec<CrawlArg>,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
    /// Print which crawls were forgotten as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::open(&global, &self.place).await?;
        match self.command {
            Command::Forget(args) => args.run(&backend).await,
        }
    }
}

impl Forget {
    /// Checks all crawls before forgetting any.
    async fn run(self, backend: &Backend) -> Outcome {
        let mut all: Vec<CrawlStats> = Vec::new();
        for crawl in &self.crawl {
            let stats = backend.crawl_or_failed_job(crawl).await?;
            if !stats.status.is_over() {
                let (id, status) = (&stats.crawl, stats.status);
                return Err(Fail::usage(format!(
                    "crawl {id} is {status}: only what is over can be forgotten; `trawl cancel {id}` ends it"
                )));
            }
            if all.iter().all(|known| known.crawl != stats.crawl) {
                all.push(stats);
            }
        }
        let urls = all.iter().map(|stats| stats.counts.admitted).sum();
        let failed = all.iter().map(|stats| stats.counts.failed + stats.counts.expired).sum();
        confirm(
            &format!(
                "forget {} with {}, and {} with them?",
                counted(all.len() as u64, "crawl"),
                counted(urls, "URL"),
                counted(failed, "dead letter")
            ),
            self.yes,
        )?;
        for stats in &all {
            // The job first: if the crawl then stays, the command can be repeated.
            backend.jobs.forget_one(&stats.crawl).await?;
            backend.control.forget_crawl(&stats.crawl_ref()).await?;
        }
        backend.say(format_args!("{} forgotten", counted(all.len() as u64, "crawl")));
        if self.json {
            let ids: Vec<_> = all.iter().map(|stats| &stats.crawl).collect();
            print_json(&json!({ "forgotten": ids }));
        }
        Ok(Exit::Ok)
    }
}
