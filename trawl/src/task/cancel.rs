//! `trawl task cancel`: ends tasks that are no longer wanted.

use trawl_cli::{CrawlArg, Fail, Outcome, counted, print_json};
use trawl_common::cancel::cancel_tasks;
use trawl_common::exit::Exit;
use trawl_common::frontier::TaskKey;

use super::list::without_end;
use crate::backend::Backend;
use crate::confirm::confirm;

/// The command-line arguments of `trawl task cancel`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Their keys, as `trawl task list` shows them
    #[arg(value_name = "TASK", required_unless_present = "crawl", conflicts_with = "crawl")]
    tasks: Vec<TaskKey>,
    /// All that wait or run in this crawl, which goes on: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlArg>,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
    /// Print how many there were as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        let mut cancelled = 0;
        match &self.crawl {
            Some(arg) => {
                let crawl = backend.crawl(arg).await?.crawl_ref();
                let tasks = without_end(backend, &crawl).await?;
                if !tasks.is_empty() {
                    let all = counted(tasks.len() as u64, "task");
                    confirm(&format!("cancel {all} of crawl {}?", crawl.id), self.yes)?;
                }
                cancelled += cancel_tasks(&crawl, &tasks, &*backend.control).await?;
            }
            None => {
                for stats in backend.stats.crawls().await? {
                    cancelled += cancel_tasks(&stats.crawl_ref(), &self.tasks, &*backend.control).await?;
                }
                if cancelled == 0 {
                    return Err(Fail::usage(
                        "none of these tasks waits or runs: `trawl task list` shows those that do",
                    ));
                }
            }
        }
        match self.json {
            true => print_json(&serde_json::json!({ "cancelled": cancelled })),
            false => backend.say(format!("{} cancelled", counted(cancelled, "task"))),
        }
        Ok(Exit::Ok)
    }
}
