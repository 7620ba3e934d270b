//! `trawl task list`: lists unfinished and failed tasks, and the state of each.

use anstream::println;
use trawl_cli::{CrawlArg, Fail, Outcome, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::TaskKey;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::task_report::{TaskPlace, TaskReader, TaskReport};
use trawl_common::text::printable;

use crate::backend::Backend;

/// Maximum length of a recipe in the list, in bytes.
const SHOWN: usize = 200;

/// The command-line arguments of `trawl task list`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only those of this crawl: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlArg>,
    /// Only those of this spider
    #[arg(long, value_name = "NAME")]
    spider: Option<SpiderName>,
    /// Only those that are there
    #[arg(long, value_name = "PLACE", value_parser = clap::builder::PossibleValuesParser::new(TaskPlace::NAMES))]
    place: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        let crawls = match &self.crawl {
            Some(arg) => vec![backend.crawl(arg).await?],
            None => backend.stats.crawls().await?,
        };
        // Always parses: the argument allows only these names.
        let only = self.place.as_deref().and_then(|place| place.parse::<TaskPlace>().ok());
        let reader = TaskReader { stats: &*backend.stats, control: &*backend.control };
        let mut listed = 0;
        for stats in crawls {
            if self.spider.as_ref().is_some_and(|spider| *spider != stats.spider) {
                continue;
            }
            let mut place = Some((false, 0));
            while let Some(from) = place {
                let (reports, next) = reader.page(&stats.crawl_ref(), from, only).await?;
                listed += reports.len() as u64;
                reports.iter().for_each(|report| self.show(report));
                place = next;
            }
        }
        if !self.json {
            backend.say(match only {
                Some(only) => format!("{} {only}", counted(listed, "task")),
                None => format!("{} not done", counted(listed, "task")),
            });
        }
        Ok(Exit::Ok)
    }

    fn show(&self, report: &TaskReport) {
        if self.json {
            return print_json(report);
        }
        let recipe = printable(report.recipe.as_ref().map_or("-", |recipe| recipe.as_str()), SHOWN);
        println!("{}  {}  {}  {recipe}", report.task, report.crawl, where_it_is(report));
    }
}

/// Describes the state of a task in words.
pub(super) fn where_it_is(report: &TaskReport) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let again = match report.attempts {
        0 => String::new(),
        attempts => format!(", after {}", counted(attempts.into(), "attempt")),
    };
    match report.place {
        TaskPlace::Waiting => match (&report.worker, &report.since) {
            (Some(worker), _) => format!("waiting on {worker}{again}"),
            (None, Some(since)) => format!("waiting since {since}{again}"),
            (None, None) => format!("waiting{again}"),
        },
        TaskPlace::Running => {
            let worker = report.worker.as_ref().map_or("-", |worker| worker.as_str());
            let since = report.since.as_ref().map_or_else(String::new, |since| format!(" since {since}"));
            format!("running on {worker}{since}{again}")
        }
        TaskPlace::Parked => format!("parked until {}{again}", known(&report.until)),
        TaskPlace::Failed => {
            let error = printable(&known(&report.error), 1024);
            format!("failed after {}: {error}", counted(report.attempts.into(), "attempt"))
        }
    }
}

/// Returns the keys of a crawl's tasks that have not ended.
pub(super) async fn without_end(backend: &Backend, crawl: &CrawlRef) -> Result<Vec<TaskKey>, Fail> {
    let (mut keys, mut cursor) = (Vec::new(), Some(0));
    while let Some(at) = cursor {
        let page = backend.stats.tasks(crawl, at).await?;
        keys.extend(page.tasks.into_iter().map(|task| task.key));
        cursor = page.next;
    }
    keys.sort();
    keys.dedup();
    Ok(keys)
}
