//! `trawl task submit`

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anstream::println;
use serde::Serialize;
use tokio::sync::mpsc;
use trawl_cli::{ArgumentFlags, CrawlArg, Fail, Outcome, SpiderArg, count, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::Task;
use trawl_common::health::Health;
use trawl_common::list::{self, Line};
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::ports::{CrawlSession, NewWork, Opening, SourcesRead, Terms};
use trawl_common::priority::Priority;
use trawl_common::spider::{Judging, SpiderText, crawl_for};
use trawl_common::task::{NewTask, Recipe, Unique};
use trawl_common::time::UnixMs;
use trawl_producer::sitemap::Plain;

use crate::backend::Backend;

/// How long a submission that breaks off keeps the spider's other crawls from being fed.
const LEASE: Duration = Duration::from_secs(30);

/// Maximum number of tasks that are admitted at a time.
const BATCH: usize = 500;
/// Maximum size in bytes of recipes that are admitted at a time.
const BATCH_BYTES: usize = 4 << 20;
/// Maximum number of lines that are read ahead: each may have a megabyte.
const MAX_LINES_AHEAD: usize = 16;

/// The command-line arguments of `trawl task submit`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The spider whose program does the tasks: its name, or its file
    #[arg(long, value_name = "NAME|FILE")]
    spider: SpiderArg,
    #[command(flatten)]
    arguments: ArgumentFlags,
    /// A file with a task a line, as JSON: a string, which is the recipe, or an object; compressed by gzip or not; -
    /// for standard input
    #[arg(value_name = "FILE", required_unless_present = "recipe")]
    file: Option<PathBuf>,
    /// Submit one task that says this
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    recipe: Option<Recipe>,
    /// The text by which duplicates of that task are recognized: the spider admits one of them
    #[arg(long, value_name = "TEXT", requires = "recipe")]
    unique: Option<Unique>,
    /// The priority of tasks that do not set one: the highest number comes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<Priority>,
    /// How often tasks are retried that do not set it
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// The crawl to open, or to continue [default: a new one, named by the time]
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlArg>,
    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    crawl: CrawlId,
    /// Tasks that are new to the spider, or to its crawl.
    new: u64,
    /// Tasks that it has admitted before.
    known: u64,
    /// Lines that are not tasks.
    invalid: u64,
}

impl Args {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        let settings = &backend.settings;
        let arguments = self.arguments.arguments()?;
        let folder = self.spider.folder(settings, arguments.clone())?;
        let spider = self.spider.load_for_workers(&folder, settings)?;
        // The files of workers do not have the arguments.
        let text = if arguments.is_empty() { None } else { self.spider.text(&folder)? };
        let named = self.named_crawl(backend).await?;
        let (crawl, is_new) = crawl_for(&spider, named, UnixMs::now()).map_err(Fail::usage)?;
        let (terms, text) = (Terms::new(&spider), text.map(SpiderText::from));
        // Whoever submits a task again is told that it is known.
        let judging = Some(Judging { is_dedup_chosen: true, ..spider.judging() });
        let opening =
            Opening { crawl: crawl.clone(), terms, text, judging, is_new, lease: LEASE, reads: None };
        let lines = self.lines(&spider.name)?;
        let engine = backend.engine().await?;
        let session = engine.open(opening, Arc::new(Health::fail_fast())).await?;
        let answer = self.admit(&*session, lines, &crawl).await;
        // Admitted tasks are not lost; the rest can be submitted again.
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                session.abandon().await?;
                return Err(error);
            }
        };
        session.close_read(Some(SourcesRead::of_submission(answer.known))).await?;
        let (new, known, invalid) = (counted(answer.new, "new task"), count(answer.known), answer.invalid);
        let left_out =
            if invalid > 0 { format!(", {invalid} invalid, which are left out") } else { String::new() };
        backend.say(format!("{new} in crawl {}, {known} known{left_out}", crawl.id));
        match self.json {
            true => print_json(&answer),
            false => println!("{}", crawl.id),
        }
        Ok(if invalid > 0 { Exit::FailedUrls } else { Exit::Ok })
    }

    async fn named_crawl(&self, backend: &Backend) -> Result<Option<CrawlId>, Fail> {
        Ok(match &self.crawl {
            None => None,
            Some(CrawlArg::Latest) => Some(backend.crawl(&CrawlArg::Latest).await?.crawl),
            Some(CrawlArg::Named(id)) => Some(id.clone()),
        })
    }

    /// Returns the lines, read on demand by a separate thread.
    fn lines(&self, spider: &SpiderName) -> Result<mpsc::Receiver<Result<Line<NewTask>, io::Error>>, Fail> {
        let (send, lines) = mpsc::channel(MAX_LINES_AHEAD);
        if let Some(recipe) = &self.recipe {
            let task = NewTask { unique: self.unique.clone(), ..NewTask::from_recipe(recipe.clone()) };
            // The channel has room for one.
            let _ = send.try_send(Ok(Line { number: 1, said: Ok(task) }));
            return Ok(lines);
        }
        let path = self.file.clone().unwrap_or_default();
        let reader: Box<dyn Read + Send> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(
                File::open(&path).map_err(|error| Fail::usage(format!("{}: {error}", path.display())))?,
            ),
        };
        let reader = tasks_of(reader, &path)?;
        let spider = spider.clone();
        std::thread::spawn(move || {
            let take = |line| match send.blocking_send(Ok(line)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            let parse = |line: &str| {
                let task = NewTask::from_line(line).and_then(|task| task.only_for(&spider));
                task.map_err(|error| error.to_string())
            };
            if let Err(error) = list::read(reader, parse, take) {
                // The receiver may have given up.
                let _ = send.blocking_send(Err(error));
            }
        });
        Ok(lines)
    }

    async fn admit(
        &self,
        session: &dyn CrawlSession,
        mut lines: mpsc::Receiver<Result<Line<NewTask>, io::Error>>,
        crawl: &CrawlRef,
    ) -> Result<Answer, Fail> {
        let mut answer = Answer { crawl: crawl.id.clone(), new: 0, known: 0, invalid: 0 };
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(line) = lines.recv().await {
            let line = line.map_err(|error| Fail::run(format!("the tasks cannot be read: {error}")))?;
            match line.said {
                Ok(task) => {
                    bytes += task.recipe.as_str().len();
                    let task = task.or(self.priority, self.retries);
                    batch.push(NewWork::task(Task::new(&crawl.spider, task)));
                }
                Err(broken) => {
                    answer.invalid += 1;
                    anstream::eprintln!("line {}: {}", line.number, broken.reason);
                }
            }
            if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                answer.add(&session.admit(&batch).await?);
                batch.clear();
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            answer.add(&session.admit(&batch).await?);
        }
        Ok(answer)
    }
}

/// Returns a decompressed list of tasks. Any other content is an error.
fn tasks_of(reader: Box<dyn Read + Send>, path: &Path) -> Result<Box<dyn Read + Send>, Fail> {
    let unreadable = |error| Fail::usage(format!("{}: {error}", path.display()));
    let plain = Plain::new(reader, u64::MAX).map_err(unreadable)?;
    match plain.first() {
        Some(b'<') => Err(Fail::usage(format!(
            "{} is XML, and no list of tasks: `producer --spider NAME` reads sitemaps and feeds",
            path.display()
        ))),
        Some(b'[') => Err(Fail::usage(format!(
            "{} is a JSON array: write a task a line (`jq -c '.[]'` makes lines of it)",
            path.display()
        ))),
        _ => Ok(Box::new(plain)),
    }
}

impl Answer {
    fn add(&mut self, new: &[bool]) {
        let fresh = new.iter().filter(|new| **new).count();
        self.new += fresh as u64;
        self.known += (new.len() - fresh) as u64;
    }
}
