//! `trawl task show`

use anstream::println;
use serde_json::json;
use trawl_cli::{Fail, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::dead_letter::Note;
use trawl_common::frontier::{Record, State, Task, TaskKey, UrlState};
use trawl_common::names::CrawlRef;
use trawl_common::task::MAX_RECIPE_BYTES;
use trawl_common::text::printable;

use crate::backend::Backend;

/// Which to show.
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
        let key = self.task.clone().into();
        let mut found = false;
        for stats in backend.stats.crawls().await? {
            let crawl = stats.crawl_ref();
            let state = backend.stats.url_state(&crawl, &key).await?;
            let note = backend.control.failure(&crawl, &key).await?;
            if matches!(state, UrlState::Pending(_)) || note.is_some() {
                found = true;
                let task = backend.control.task(&crawl, &self.task).await?;
                self.show(&crawl, &state, note.as_ref(), task.as_ref());
            }
        }
        match found {
            true => Ok(Exit::Ok),
            false => Err(Fail::usage(format!("{} is neither pending nor failed in any crawl", self.task))),
        }
    }

    fn show(&self, crawl: &CrawlRef, state: &UrlState, note: Option<&Note>, task: Option<&Task>) {
        let place = match state {
            UrlState::Pending(record) => place(record),
            UrlState::Unseen | UrlState::Ended => "failed",
        };
        if self.json {
            let says = task.map(|task| &task.new);
            return print_json(&json!({
                "task": self.task.as_str(), "crawl": crawl.id, "spider": crawl.spider, "place": place,
                "failure": note, "says": says,
            }));
        }
        let recipe = task.map(|task| printable(task.new.recipe.as_str(), MAX_RECIPE_BYTES));
        let lines = [
            ("task", self.task.to_string()),
            ("crawl", crawl.id.to_string()),
            ("spider", crawl.spider.to_string()),
            ("place", place.to_owned()),
            ("error", note.map_or("-".to_owned(), |note| printable(&note.cause.error, 1024))),
            ("recipe", recipe.unwrap_or_else(|| "-".to_owned())),
        ];
        for (name, value) in lines {
            println!("{name:<10} {value}");
        }
        println!();
    }
}

fn place(record: &Record) -> &'static str {
    match record.state {
        State::New { .. } | State::Queued { .. } => "queued",
        State::Parked { .. } => "parked",
        State::Held { has_started: true, .. } => "running",
        State::Held { .. } => "held",
    }
}
