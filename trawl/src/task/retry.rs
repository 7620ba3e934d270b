//! `trawl task retry`: runs failed tasks again.

use std::collections::BTreeMap;

use trawl_cli::{Fail, Outcome, counted, print_json};
use trawl_common::dead_letters::{self, Failed, Replay};
use trawl_common::exit::Exit;
use trawl_common::frontier::TaskKey;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::CrawlId;

use crate::backend::Backend;

/// The command-line arguments of `trawl task retry`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Their keys, as `trawl task list` shows them
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskKey>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        let engine = backend.engine().await?;
        let mut sent: BTreeMap<CrawlId, u64> = BTreeMap::new();
        for stats in backend.stats.crawls().await? {
            let found = self.of(backend, &stats).await?;
            if found.is_empty() {
                continue;
            }
            let replay = Replay::new(&stats, &*engine, &*backend.stats).await?;
            let target = replay.target().id.clone();
            let count = replay.send(&found).await?;
            replay.close(&*backend.control).await?;
            *sent.entry(target).or_default() += count;
        }
        if sent.is_empty() {
            return Err(Fail::usage(
                "none of these tasks has failed: `trawl task list` shows those that have",
            ));
        }
        if self.json {
            print_json(&sent);
        } else {
            sent.iter().for_each(|(crawl, number)| {
                backend.say(format!("{} again in crawl {crawl}", counted(*number, "task")))
            });
        }
        Ok(Exit::Ok)
    }

    /// Returns the given tasks that failed in a crawl.
    async fn of(&self, backend: &Backend, stats: &CrawlStats) -> Result<Vec<Failed>, Fail> {
        let mut found = Vec::new();
        for task in &self.tasks {
            let of = dead_letters::named(&*backend.control, &stats.crawl_ref(), task.as_str()).await?;
            found.extend(of.into_iter().filter(|failed| failed.key().is_some()));
        }
        Ok(found)
    }
}
