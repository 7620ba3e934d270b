//! `trawl schedule`: the crawls that spiders' files ask for by themselves.

use std::collections::BTreeMap;

use anstream::println;
use anstyle::Style;
use clap::Subcommand;
use serde_json::{Value, json};
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::jobs::{Job, NewJob};
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::ports::{JobFilter, JobPage, ScheduleState};
use trawl_common::schedule::Schedule;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_common::time::UnixMs;

use crate::backend::{Backend, Where};

/// What to do with schedules.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the spiders of this machine's folder that have a schedule: their last job, and when the next is due
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Ask for a crawl now, besides those that are due; print its job's id
    Run {
        /// The spider
        spider: SpiderName,
        /// Print the job's id as JSON
        #[arg(long)]
        json: bool,
    },
    /// Hold a schedule: no crawl of it is asked for until it is resumed
    Pause {
        /// The spider
        spider: SpiderName,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let a schedule go on; what passed while it was held is not made up for
    Resume {
        /// The spider
        spider: SpiderName,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::open(&global, &Where::default()).await?;
        match self.command {
            Command::List { json } => list(&backend, json).await,
            Command::Run { spider, json } => ask(&backend, spider, json).await,
            Command::Pause { spider, json } => {
                check(&backend, &spider).await?;
                backend.schedules.pause(&spider).await?;
                tell(&backend, &spider, true, json)
            }
            Command::Resume { spider, json } => {
                check(&backend, &spider).await?;
                backend.schedules.resume(&spider, UnixMs::now()).await?;
                tell(&backend, &spider, false, json)
            }
        }
    }
}

/// A spider's schedule, and how it stands.
struct Row {
    spider: SpiderName,
    schedule: Schedule,
    is_paused: bool,
    /// The spider's last job, whoever asked for it.
    last: Option<Job>,
    /// When the next is due, unless it is paused.
    next: Option<UnixMs>,
}

async fn list(backend: &Backend, json: bool) -> Outcome {
    let states = backend.schedules.list().await?;
    let schedules = schedules(&backend.settings)?;
    if schedules.is_empty() && !json {
        let folder = backend.settings.spiders_dir.display();
        backend
            .say(format_args!("no spider in {folder} has a schedule: docs/spiders.md says how to write one"));
        return Ok(Exit::Ok);
    }
    if !json {
        print_head();
    }
    for (spider, schedule) in schedules {
        let is_paused = states.get(&spider) == Some(&ScheduleState::Paused);
        let filter = JobFilter { spider: Some(spider.clone()), ..JobFilter::default() };
        let last = backend.jobs.list(&filter, JobPage { before: None, max: 1 }).await?.pop();
        let next = schedule.next(UnixMs::now()).filter(|_| !is_paused);
        let row = Row { spider, schedule, is_paused, last, next };
        if json { print_json(&row.as_json()) } else { row.print() }
    }
    Ok(Exit::Ok)
}

async fn ask(backend: &Backend, spider: SpiderName, json: bool) -> Outcome {
    check(backend, &spider).await?;
    let new = NewJob::new(CrawlId::generate(UnixMs::now()), spider);
    backend.jobs.submit(&new).await?;
    backend.say(format_args!("job {0} is pending; `trawl wait {0}` waits for its end", new.id));
    match json {
        true => print_json(&json!({ "job": new.id })),
        false => println!("{}", new.id),
    }
    Ok(Exit::Ok)
}

fn tell(backend: &Backend, spider: &SpiderName, is_paused: bool, json: bool) -> Outcome {
    backend.say(format_args!("the schedule of {spider} {}", if is_paused { "is paused" } else { "goes on" }));
    if json {
        print_json(&json!({ "spider": spider, "paused": is_paused }));
    }
    Ok(Exit::Ok)
}

/// That there is such a schedule: in a file here, or as far as workers have seen one.
async fn check(backend: &Backend, spider: &SpiderName) -> Result<(), Fail> {
    let is_known = backend.schedules.list().await?.contains_key(spider)
        || schedules(&backend.settings)?.contains_key(spider);
    let unknown =
        || Fail::usage(format!("no schedule of {spider}: `trawl schedule list` lists those of this machine"));
    is_known.then_some(()).ok_or_else(unknown)
}

/// The schedules that the folder of spiders has. A file that cannot be used is named.
fn schedules(settings: &Settings) -> Result<BTreeMap<SpiderName, Schedule>, Fail> {
    let folder = Folder::of(settings);
    let shown = settings.spiders_dir.display();
    let names = folder.names().map_err(|error| Fail::run(format!("{shown}: {error}")))?;
    let mut schedules = BTreeMap::new();
    for name in names {
        let text = folder.text(&name);
        match text.and_then(|text| folder.spider(&name, text.as_deref(), &settings.items)) {
            Ok(spider) => schedules.extend(spider.schedule.map(|schedule| (name, schedule))),
            Err(error) => anstream::eprintln!("{error}"),
        }
    }
    Ok(schedules)
}

/// What programs read of a schedule, with the next three instants.
pub(crate) fn as_json(schedule: &Schedule) -> Value {
    json!({
        "cron": schedule.cron.to_string(),
        "timezone": schedule.timezone_name(),
        "missed": <&str>::from(schedule.missed),
        "overlap": <&str>::from(schedule.overlap),
        "next": next_three(schedule),
    })
}

/// The next three instants, by the clocks of the schedule.
pub(crate) fn next_three(schedule: &Schedule) -> Vec<String> {
    let first = schedule.next(UnixMs::now());
    let instants = std::iter::successors(first, |instant| schedule.next(*instant));
    instants.take(3).map(|instant| schedule.shown(instant)).collect()
}

const DIM: Style = Style::new().dimmed();

fn print_head() {
    println!(
        "{DIM}{:<20} {:<20} {:<20} {:<24}  {:<9}  {}{DIM:#}",
        "spider", "schedule", "timezone", "last", "status", "next"
    );
}

impl Row {
    fn print(&self) {
        let next = self.next.map(|next| self.schedule.shown(next));
        println!(
            "{:<20} {:<20} {:<20} {:<24}  {:<9}  {}",
            self.spider.as_str(),
            self.schedule.cron.to_string(),
            self.schedule.timezone_name(),
            self.last.as_ref().map_or_else(|| "-".to_owned(), |job| job.asked.to_string()),
            self.last.as_ref().map_or("-", |job| job.status().as_str()),
            next.as_deref().unwrap_or(if self.is_paused { "paused" } else { "never" }),
        );
    }

    fn as_json(&self) -> Value {
        json!({
            "spider": self.spider,
            "schedule": as_json(&self.schedule),
            "paused": self.is_paused,
            "last": self.last,
            "next": self.next.map(|next| self.schedule.shown(next)),
        })
    }
}
