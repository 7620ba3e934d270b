//! `trawl task list`: lists unfinished and failed tasks, and the state of each; or those that have ended lately.

use anstream::println;
use trawl_cli::{CrawlArg, Fail, Outcome, counted, print_json};
use trawl_common::ended_tasks::{EndedTask, read_ended};
use trawl_common::exit::Exit;
use trawl_common::frontier::TaskKey;
use trawl_common::logs::LogFilter;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::LogPlace;
use trawl_common::task_report::{TaskPlace, TaskReader, TaskReport};
use trawl_common::text::printable;

use crate::backend::Backend;

/// Maximum length of a recipe in the list, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// The number of ended tasks read at a time.
const READ_BATCH: usize = 500;

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
    /// List the tasks that ended last instead, done or not, the last first
    #[arg(long, conflicts_with = "place")]
    ended: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        if self.ended {
            return self.list_ended(backend).await;
        }
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

    async fn list_ended(&self, backend: &Backend) -> Outcome {
        let crawl = match &self.crawl {
            Some(arg) => Some(backend.crawl(arg).await?.crawl),
            None => None,
        };
        let filter = LogFilter { crawl, spider: self.spider.clone(), ..LogFilter::default() };
        let (mut listed, mut place) = (0, Some(LogPlace::END));
        while let Some(before) = place {
            let (tasks, older) = read_ended(&*backend.ended_tasks, &filter, before, READ_BATCH).await?;
            listed += tasks.len() as u64;
            tasks.iter().for_each(|task| self.show_ended(task));
            place = older;
        }
        if !self.json {
            backend.say(format!("{} ended", counted(listed, "task")));
        }
        Ok(Exit::Ok)
    }

    fn show_ended(&self, task: &EndedTask) {
        if self.json {
            return print_json(task);
        }
        let took = task.seconds.map_or_else(String::new, |seconds| format!(" in {seconds:.1} s"));
        let what = match &task.error {
            Some(error) => format!("{}: {}", task.outcome, printable(error, 1024)),
            None => format!("{}, {}", task.outcome, counted(task.items, "item")),
        };
        let recipe = printable(&task.recipe, MAX_SHOWN_BYTES);
        println!("{}  {}  ended at {}{took}, {what}  {recipe}", task.task, task.crawl, task.ended);
    }

    fn show(&self, report: &TaskReport) {
        if self.json {
            return print_json(report);
        }
        let recipe = printable(report.recipe.as_ref().map_or("-", |recipe| recipe.as_str()), MAX_SHOWN_BYTES);
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
