//! `trawl jobs`: submitted crawls.

mod submit;
mod table;

use clap::Subcommand;
use serde::Serialize;
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::explain;
use trawl_common::jobs::{Job, JobStatus, Problem};
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::ports::{JobFilter, JobPage};

use crate::backend::{Backend, Subcommands};

pub(crate) type Args = Subcommands<Command>;

/// The subcommands of `trawl jobs`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Submit a crawl, which the next free worker begins; print its id
    Submit(Box<submit::Args>),
    /// List jobs: first those in the queue, in their order, then the others, the newest first
    List {
        /// Only those that stand so: pending, running, finished, failed, cancelled
        #[arg(long, value_name = "STATUS")]
        status: Option<JobStatus>,
        /// Only those of this spider
        #[arg(long, value_name = "NAME")]
        spider: Option<SpiderName>,
        /// At most N
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show one job
    Show {
        /// Its id
        job: CrawlId,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Cancel a job that waits in the queue, or one that runs together with its crawl
    Cancel {
        /// Its id
        job: CrawlId,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        match self.command {
            Command::Submit(args) => args.run(Backend::open(&global, &self.place).await?).await,
            Command::List { status, spider, limit, json } => {
                let backend = Backend::look(&global, &self.place).await?;
                let filter = JobFilter { status, spider, project: None };
                let mut rows = Vec::new();
                for job in list(&backend, &filter, limit).await? {
                    rows.push(Row::new(&backend, job).await?);
                }
                show_all(&rows, &backend, json);
                Ok(Exit::Ok)
            }
            Command::Show { job, json } => {
                let backend = Backend::look(&global, &self.place).await?;
                show_one(&Row::new(&backend, find(&backend, &job).await?).await?, json);
                Ok(Exit::Ok)
            }
            Command::Cancel { job, json } => {
                let backend = Backend::open(&global, &self.place).await?;
                let crawl = find(&backend, &job).await?.new.crawl();
                let done = match backend.cancel(&crawl).await? {
                    true => "is cancelled before its crawl began",
                    false => "is cancelled, with its crawl",
                };
                backend.say(format_args!("job {job} {done}"));
                if json {
                    show_one(&Row::new(&backend, find(&backend, &job).await?).await?, json);
                }
                Ok(Exit::Ok)
            }
        }
    }
}

/// Returns the jobs that pass the filter; those in the queue come first, in their order.
async fn list(backend: &Backend, filter: &JobFilter, limit: usize) -> Result<Vec<Job>, Fail> {
    let queued = match filter.status {
        None | Some(JobStatus::Pending) => backend.jobs.queued(limit).await?,
        Some(_) => Vec::new(),
    };
    let mut jobs: Vec<Job> = queued.into_iter().filter(|job| filter.admits(job)).collect();
    if filter.status != Some(JobStatus::Pending) {
        let others = backend.jobs.list(filter, JobPage { before: None, max: limit }).await?;
        jobs.extend(others.into_iter().filter(|job| job.status() != JobStatus::Pending));
    }
    jobs.truncate(limit);
    Ok(jobs)
}

async fn find(backend: &Backend, id: &CrawlId) -> Result<Job, Fail> {
    let missing = || Fail::usage(format!("no job {id}: `trawl jobs list` lists them"));
    backend.jobs.job(id).await?.ok_or_else(missing)
}

/// A job that is shown.
#[derive(Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    job: Job,
    /// The problems of its crawl, one sentence each.
    notes: Vec<String>,
}

impl Row {
    pub(crate) async fn new(backend: &Backend, job: Job) -> Result<Self, Fail> {
        let stats = match job.run() {
            Some(_) => backend.stats.crawl_stats(&job.new.id).await?,
            None => None,
        };
        let mut notes = stats.map(|stats| explain::notes(&stats)).unwrap_or_default();
        let problem = job.problem().map_or("", Problem::as_str);
        notes.retain(|note| !problem.contains(note.as_str()));
        Ok(Self { job, notes })
    }

    /// Returns its problem and what is amiss with its crawl.
    pub(crate) fn problems(&self) -> String {
        let problem = self.job.problem().map(Problem::to_string);
        problem.into_iter().chain(self.notes.iter().cloned()).collect::<Vec<_>>().join("; ")
    }
}

fn show_all(jobs: &[Row], backend: &Backend, json: bool) {
    match json {
        true => jobs.iter().for_each(print_json),
        false if jobs.is_empty() => backend.say("no such job: `trawl jobs submit SPIDER` submits one"),
        false => table::print(jobs),
    }
}

fn show_one(job: &Row, json: bool) {
    if json { print_json(job) } else { table::print_in_full(job) }
}
