//! `trawl schedule`: the cron schedules in spiders' files.

use std::sync::Arc;

use anstream::println;
use anstyle::Style;
use clap::Subcommand;
use serde_json::{Value, json};
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::jobs::NewJob;
use trawl_common::names::{CrawlId, SpiderRef};
use trawl_common::schedule::Schedule;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_common::timetable::{Standing, Timetable, is_known, standings};

use crate::backend::{Backend, Where};
use crate::jobs::Row;

/// The command-line arguments of `trawl schedule`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the spiders that have a schedule, deployed or in this machine's folder: their last job, and when the next
    /// is due
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Ask for a crawl now, besides those that are due; print its job's id
    Run {
        /// The spider; one that is deployed in another project than the default one as PROJECT/SPIDER
        spider: SpiderRef,
        /// Print the job's id as JSON
        #[arg(long)]
        json: bool,
    },
    /// Hold a schedule: no crawl of it is asked for until it is resumed
    Pause {
        /// The spider; one that is deployed in another project than the default one as PROJECT/SPIDER
        spider: SpiderRef,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let a schedule go on; what passed while it was held is not made up for
    Resume {
        /// The spider; one that is deployed in another project than the default one as PROJECT/SPIDER
        spider: SpiderRef,
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
                print_change(&backend, &spider, true, json)
            }
            Command::Resume { spider, json } => {
                check(&backend, &spider).await?;
                backend.schedules.resume(&spider, UnixMs::now()).await?;
                print_change(&backend, &spider, false, json)
            }
        }
    }
}

async fn list(backend: &Backend, json: bool) -> Outcome {
    let standings = standings(&read(backend).await?, &*backend.schedules, &*backend.jobs).await?;
    if standings.is_empty() && !json {
        let folder = backend.settings.spiders_dir.display();
        backend.say(format_args!(
            "no spider that is deployed or in {folder} has a schedule: docs/spiders.md says how to write one"
        ));
        return Ok(Exit::Ok);
    }
    if !json {
        print_head();
    }
    for standing in standings {
        let last = match &standing.last {
            Some(job) => Some(Row::new(backend, job.clone()).await?),
            None => None,
        };
        if json {
            print_json(&row_as_json(&standing, last.as_ref()))
        } else {
            print_row(&standing, last.as_ref())
        }
    }
    Ok(Exit::Ok)
}

/// Returns the schedules known on this machine. Logs the files that cannot be used.
async fn read(backend: &Backend) -> Result<Timetable, Fail> {
    let mut timetable = Timetable::default();
    timetable.read_again(&*backend.spider_store, &Arc::new(backend.settings.clone())).await?;
    Ok(timetable)
}

async fn ask(backend: &Backend, spider: SpiderRef, json: bool) -> Outcome {
    check(backend, &spider).await?;
    let new = NewJob { is_scheduled: true, ..NewJob::from_id(CrawlId::generate(UnixMs::now()), spider) };
    backend.jobs.submit(&new).await?;
    backend.say(format_args!("job {0} is pending; `trawl wait {0}` waits for its end", new.id));
    match json {
        true => print_json(&json!({ "job": new.id })),
        false => println!("{}", new.id),
    }
    Ok(Exit::Ok)
}

fn print_change(backend: &Backend, spider: &SpiderRef, is_paused: bool, json: bool) -> Outcome {
    backend.say(format_args!("the schedule of {spider} {}", if is_paused { "is paused" } else { "goes on" }));
    if json {
        print_json(&json!({ "project": spider.project, "spider": spider.spider, "paused": is_paused }));
    }
    Ok(Exit::Ok)
}

/// Fails if there is no such schedule.
async fn check(backend: &Backend, spider: &SpiderRef) -> Result<(), Fail> {
    let is_known = is_known(spider, &read(backend).await?, &*backend.schedules).await?;
    let unknown = || {
        Fail::usage(format!("no schedule of {spider}: `trawl schedule list` lists those that are known here"))
    };
    is_known.then_some(()).ok_or_else(unknown)
}

/// Returns a schedule as JSON, with its next three instants.
pub(crate) fn as_json(schedule: &Schedule) -> Value {
    json!({
        "cron": schedule.cron.to_string(),
        "timezone": schedule.timezone_name(),
        "missed": <&str>::from(schedule.missed),
        "overlap": <&str>::from(schedule.overlap),
        "next": next_three(schedule),
    })
}

/// Returns the next three instants.
fn next_three(schedule: &Schedule) -> Vec<String> {
    schedule.instants(UnixMs::now()).take(3).map(|instant| instant.to_string()).collect()
}

const DIM: Style = Style::new().dimmed();

fn print_head() {
    println!(
        "{DIM}{:<20} {:<20} {:<20} {:<24}  {:<9}  {:<24}  {}{DIM:#}",
        "spider", "schedule", "timezone", "last", "status", "next", "problem"
    );
}

fn print_row(standing: &Standing, row: Option<&Row>) {
    let Standing { spider, schedule, is_paused, last } = standing;
    let next = standing.next(UnixMs::now()).map(|next| schedule.shown(next));
    println!(
        "{:<20} {:<20} {:<20} {:<24}  {:<9}  {:<24}  {}",
        spider.to_string(),
        schedule.cron.to_string(),
        schedule.timezone_name(),
        last.as_ref().map_or_else(|| "-".to_owned(), |job| job.asked.to_string()),
        last.as_ref().map_or("-", |job| job.status().as_str()),
        next.as_deref().unwrap_or(if *is_paused { "paused" } else { "never" }),
        printable(&row.map(Row::problems).unwrap_or_default(), 160),
    );
}

fn row_as_json(standing: &Standing, row: Option<&Row>) -> Value {
    let Standing { spider, schedule, is_paused, .. } = standing;
    json!({
        "project": spider.project,
        "spider": spider.spider,
        "schedule": as_json(schedule),
        "paused": is_paused,
        "last": row,
        "next": standing.next(UnixMs::now()).map(|next| next.to_string()),
    })
}
