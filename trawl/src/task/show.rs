//! `trawl task show`: shows all details of a task.

use anstream::println;
use serde_json::json;
use trawl_cli::{Fail, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::TaskKey;
use trawl_common::task::MAX_RECIPE_BYTES;
use trawl_common::task_report::{TaskReader, TaskReport};
use trawl_common::text::printable;

use super::list::where_it_is;
use crate::backend::Backend;

/// The command-line arguments of `trawl task show`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The task's key: `task:` and 32 hexadecimal digits
    task: TaskKey,
    /// Print one JSON object for each crawl that knows it
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        let reader = TaskReader { stats: &*backend.stats, control: &*backend.control };
        let mut found = false;
        for stats in backend.stats.crawls().await? {
            let crawl = stats.crawl_ref();
            let Some(report) = reader.one(&crawl, &self.task).await? else { continue };
            found = true;
            match self.json {
                false => show(&report),
                true => {
                    let failure = backend.control.failure(&crawl, &self.task.clone().into()).await?;
                    print_json(&json!({ "task": report.task, "crawl": report.crawl, "spider": report.spider,
                        "place": report.place, "since": report.since, "until": report.until, "why": report.why, "worker": report.worker,
                        "attempts": report.attempts, "failure": failure, "says": report.says }));
                }
            }
        }
        match found {
            true => Ok(Exit::Ok),
            false => Err(Fail::usage(format!("{} is neither pending nor failed in any crawl", self.task))),
        }
    }
}

fn show(report: &TaskReport) {
    let recipe = report.recipe.as_ref().map(|recipe| printable(recipe.as_str(), MAX_RECIPE_BYTES));
    let lines = [
        ("task", report.task.clone()),
        ("crawl", report.crawl.to_string()),
        ("spider", report.spider.to_string()),
        ("place", where_it_is(report)),
        ("why", report.why.clone().unwrap_or_else(|| "-".to_owned())),
        ("recipe", recipe.unwrap_or_else(|| "-".to_owned())),
    ];
    for (name, value) in lines {
        println!("{name:<10} {value}");
    }
    println!();
}
