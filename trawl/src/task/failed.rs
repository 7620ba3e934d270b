//! `trawl task list` and `trawl task retry`: tasks that failed.

use std::collections::BTreeMap;

use anstream::println;
use serde_json::json;
use trawl_cli::{CrawlArg, Fail, Outcome, count, print_json};
use trawl_common::dead_letters::{self, Failed, Replay};
use trawl_common::exit::Exit;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::{Key, TaskKey};
use trawl_common::names::CrawlId;
use trawl_common::text::printable;

use crate::backend::Backend;

/// So much of a recipe is listed, in bytes.
const SHOWN: usize = 200;

/// Which tasks to list.
#[derive(clap::Args)]
pub(crate) struct List {
    /// Only those of this crawl: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlArg>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Which tasks to run again.
#[derive(clap::Args)]
pub(crate) struct Retry {
    /// Their keys, as `trawl task list` shows them
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskKey>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        let crawls = match &self.crawl {
            Some(arg) => vec![backend.crawl(arg).await?],
            None => backend.stats.crawls().await?,
        };
        let mut listed = 0;
        for stats in crawls {
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let page = backend.control.failed(&stats.crawl_ref(), at).await?;
                for (key, note) in page.failed {
                    if let Key::Task(task) = key {
                        self.show(backend, &stats, &task, &note.cause.error, note.cause.attempts).await?;
                        listed += 1;
                    }
                }
                cursor = page.next;
            }
        }
        if !self.json {
            backend.say(format!("{} failed", tasks(listed)));
        }
        Ok(Exit::Ok)
    }

    async fn show(
        &self,
        backend: &Backend,
        stats: &CrawlStats,
        key: &TaskKey,
        error: &str,
        attempts: u32,
    ) -> Result<(), Fail> {
        let task = backend.control.task(&stats.crawl_ref(), key).await?;
        let recipe = task.as_ref().map(|task| task.new.recipe.as_str());
        if self.json {
            print_json(&json!({
                "task": key.as_str(), "crawl": stats.crawl, "spider": stats.spider, "recipe": recipe,
                "error": error, "attempts": attempts,
            }));
        } else {
            let recipe = printable(recipe.unwrap_or("-"), SHOWN);
            println!("{key}  {}  {}  {recipe}", stats.crawl, printable(error, 1024));
        }
        Ok(())
    }
}

impl Retry {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        let engine = backend.engine().await?;
        let mut sent: BTreeMap<CrawlId, u64> = BTreeMap::new();
        for stats in backend.stats.crawls().await? {
            let found = self.of(backend, &stats).await?;
            if found.is_empty() {
                continue;
            }
            let replay = Replay::of(&stats, &*engine, &*backend.stats).await?;
            let target = replay.target().id.clone();
            let count = replay.send(&found).await?;
            replay.close().await?;
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
                backend.say(format!("{} again in crawl {crawl}", tasks(*number)))
            });
        }
        Ok(Exit::Ok)
    }

    /// Those of them that failed in a crawl.
    async fn of(&self, backend: &Backend, stats: &CrawlStats) -> Result<Vec<Failed>, Fail> {
        let mut found = Vec::new();
        for task in &self.tasks {
            let of = dead_letters::named(&*backend.control, &stats.crawl_ref(), task.as_str()).await?;
            found.extend(of.into_iter().filter(|failed| failed.key().is_some()));
        }
        Ok(found)
    }
}

/// `1 task`, `1,234 tasks`.
fn tasks(number: u64) -> String {
    format!("{} task{}", count(number), if number == 1 { "" } else { "s" })
}
