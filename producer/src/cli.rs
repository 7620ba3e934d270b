//! The command `producer`: one run, then it ends. Safe to start from cron.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anstream::println;
use clap::Parser;
use trawl_backends::embedded::Embedded;
use trawl_backends::fleet;
use trawl_cli::{Fail, Global, Outcome, Progress as Line, Signals, SpiderArg, await_end, count};
use trawl_common::crawl::{Books, CrawlState};
use trawl_common::exit::Exit;
use trawl_common::names::{CrawlId, CrawlRef, WorkerId};
use trawl_common::ports::{ErrorKind, Frontier, Ports};
use trawl_common::settings::{IfRunning, Settings};
use trawl_common::spider::{Recrawl, Spider, Wishes};

use crate::running::{self, Beginning};
use crate::{
    Candidate, Counters, Finding, Html, Job, Progress, Report, RunError, Source, Start, preview, run,
};

/// How often the progress line is drawn.
const LOOK: Duration = Duration::from_millis(250);

/// How many hosts that are asked too rarely are named.
const SHOWN_OVERLOADS: usize = 10;

/// What to read, and for which crawl.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Sitemaps, sitemap indexes, feeds, URL lists or robots.txt: a URL, a file, or - for standard input
    /// [default: what the spider's file says]
    #[arg(required_unless_present = "spider", value_name = "SOURCE")]
    sources: Vec<Source>,
    /// The spider that the URLs are for: its name, or its file, by whose name workers find it [default: default]
    #[arg(long, value_name = "NAME|FILE")]
    spider: Option<SpiderArg>,
    /// The spider of that name has no file: it extracts what the section `items` of the settings says
    #[arg(long, requires = "spider")]
    no_file: bool,
    /// The crawl to open, or to continue [default: a new one, named by the time]
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlId>,
    /// Show what would be routed where, and touch nothing
    #[arg(long)]
    dry_run: bool,
    /// When a crawl of the spider is not over: exit (with code 0), join it, or start another [default: exit with --recrawl,
    /// else start]
    #[arg(long, value_name = "WHAT", conflicts_with = "crawl")]
    if_running: Option<IfRunning>,
    /// Fetch again what was crawled before: never, changed (if it has), always, or what is older than an AGE, as 12h
    #[arg(long, value_name = "WHEN")]
    recrawl: Option<Recrawl>,
    /// Take at most N URLs
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Wait until every URL of the crawl has been fetched or has failed
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

/// Read sitemaps and put every URL that is new into its queue
#[derive(Parser)]
#[command(name = "producer", version)]
struct Program {
    #[command(flatten)]
    args: Args,
    #[command(flatten)]
    global: Global,
}

/// The program `producer`, by its own name; `trawl producer` is the same.
pub fn main() -> ExitCode {
    let Program { args, global } = Program::parse();
    trawl_cli::main("producer", args.run(global))
}

impl Args {
    /// Reads the settings, connects, and runs.
    pub async fn run(self, global: Global) -> Outcome {
        let settings = Arc::new(Global::load(&global.source())?);
        let signals = Signals::listen().map_err(Fail::run)?;
        let spider = self.spider.clone().unwrap_or_default();
        let wishes = Wishes { recrawl: self.recrawl, ..Wishes::default() };
        let spider = spider.load(&spider.folder(&settings).with_wishes(wishes), &settings, self.no_file)?;
        let start = Start::of(&spider, &self.sources).map_err(Fail::usage)?;
        let job =
            Job { spider: Arc::new(spider), start, limit: self.limit, html: Html::IsAnError, is_new: false };
        if self.dry_run {
            let alone = Embedded::in_memory(settings.recovery.patience).map_err(Fail::run)?;
            let report = preview(settings, alone.hosts(), job, signals.stop(), show).await.map_err(fail)?;
            let found = count(report.counters.found);
            eprint_report(&format!("{found} URLs would be admitted, if new"), &report);
            return Ok(exit(&report, &signals));
        }
        if settings.fetch.contact.is_none() {
            tracing::warn!("no fetch.contact is set: hosts cannot tell you that you trouble them");
        }
        let id = WorkerId::of_this_machine();
        let ports = tokio::select! {
            () = signals.stop().cancelled() => return Ok(signals.exit().unwrap_or(Exit::Failed)),
            connected = fleet::connect(&settings, &id) => connected?,
        };
        match self.beginning(&*ports.frontier, &settings, &job.spider).await? {
            Beginning::New(crawl) => {
                let job = Job { is_new: true, ..job };
                self.produce(&ports, &settings, job, &crawl, &signals, &global.progress()).await
            }
            Beginning::Known(crawl) => {
                self.produce(&ports, &settings, job, &crawl, &signals, &global.progress()).await
            }
            Beginning::Not(running) => Ok(leave_alone(&running)),
        }
    }

    /// The crawl that a person names; or else as the spider's running crawl allows.
    async fn beginning(
        &self,
        frontier: &dyn Frontier,
        settings: &Settings,
        spider: &Spider,
    ) -> Result<Beginning, Fail> {
        if let Some(id) = &self.crawl {
            let crawl = CrawlRef { id: id.clone(), spider: spider.name.clone() };
            if crawl.is_adhoc() {
                let told = format!("{id} is for what others publish, and never ends: choose another crawl");
                return Err(Fail::usage(told));
            }
            return Ok(Beginning::Known(crawl));
        }
        Ok(running::beginning(frontier, &spider.name, spider.recrawl, self.wish(settings)).await?)
    }

    fn wish(&self, settings: &Settings) -> Option<IfRunning> {
        self.if_running.or(settings.producer.if_running)
    }

    /// Whether nobody asked for this very crawl.
    fn may_do_nothing(&self, settings: &Settings) -> bool {
        self.crawl.is_none() && self.wish(settings) != Some(IfRunning::Start)
    }

    async fn produce(
        &self,
        ports: &Ports,
        settings: &Arc<Settings>,
        job: Job,
        crawl: &CrawlRef,
        signals: &Signals,
        line: &Line,
    ) -> Outcome {
        let progress = Arc::new(Progress::default());
        let drawing = tokio::spawn(draw(line.clone(), Arc::clone(&progress)));
        let result = run(ports, Arc::clone(settings), job, crawl, progress, signals.stop()).await;
        drawing.abort();
        line.clear();
        let report = match result {
            // Another run reads sources at this moment: that crawl had not begun when this one looked, or runs beside.
            Err(RunError::Port(error)) if error.kind == ErrorKind::Busy && self.may_do_nothing(settings) => {
                let other = running::running(&*ports.frontier, &crawl.spider).await?;
                return other.map(|books| leave_alone(&books)).ok_or_else(|| Fail::run(error));
            }
            result => result.map_err(fail)?,
        };
        let (new, seen) = (count(report.counters.new), count(report.counters.seen));
        eprint_report(
            &format!("{new} URLs new in crawl {}, {seen} seen before{}", crawl.id, spared(&report.counters)),
            &report,
        );
        if self.wait && !report.stopped {
            return wait(&*ports.frontier, crawl, &report, signals, line).await;
        }
        Ok(exit(&report, signals))
    }
}

/// Says that nothing is done, which is in order.
fn leave_alone(running: &Books) -> Exit {
    anstream::eprintln!("{}", running::told(running));
    Exit::Ok
}

/// How many pages are not asked for, if any.
fn spared(counters: &Counters) -> String {
    let told = [(counters.unchanged, "unchanged by their sitemaps"), (counters.fresh, "fetched lately")];
    let told = told.iter().filter(|(number, _)| *number > 0);
    told.map(|(number, what)| format!(", {} {what}", count(*number))).collect()
}

/// Shows one finding of a dry run: lane, time to live, URL.
fn show(finding: &Finding) {
    match finding {
        Finding::Page(Candidate { page, ttl, .. }) => {
            let ttl = ttl.map_or_else(|| "-".to_owned(), |ttl| humantime::format_duration(ttl).to_string());
            println!("{:<9} {:<7} {}", page.lane, ttl, page.url);
        }
        Finding::Invalid { text, reason } => println!("{:<9} {:<7} {text}  ({reason})", "invalid", "-"),
    }
}

async fn draw(line: Line, progress: Arc<Progress>) {
    loop {
        let now = progress.snapshot();
        let backlog = progress.backlog().map(|pending| {
            format!(
                "waiting: {} URLs are still to be fetched (producer.max_backlog, max_backlog_bytes)",
                count(pending)
            )
        });
        let waits = backlog.or_else(|| progress.awaited_host()).map(|waits| format!("; {waits}"));
        line.say(format!(
            "{} sources read, {} URLs found, {} new{}",
            now.sources,
            count(now.found),
            count(now.new),
            waits.unwrap_or_default(),
        ));
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits for the crawl's end.
async fn wait(
    frontier: &dyn Frontier,
    crawl: &CrawlRef,
    report: &Report,
    signals: &Signals,
    line: &Line,
) -> Outcome {
    tokio::select! {
        () = signals.stop().cancelled() => Ok(signals.exit().unwrap_or(Exit::Failed)),
        ended = await_end(frontier, &crawl.id, line) => Ok(exit_of_crawl(&ended?, report)),
    }
}

fn exit_of_crawl(books: &Books, report: &Report) -> Exit {
    match books.status {
        CrawlState::Cancelled => Exit::Cancelled,
        _ if !report.problems.is_empty() => Exit::Failed,
        _ if books.counts.failed > 0 => Exit::FailedUrls,
        _ => Exit::Ok,
    }
}

fn exit(report: &Report, signals: &Signals) -> Exit {
    match signals.exit() {
        Some(signal) => signal,
        None if report.problems.is_empty() => Exit::Ok,
        None => Exit::Failed,
    }
}

/// One line for each source that is not as it should be, and one that starts with `head` for the run.
fn eprint_report(head: &str, report: &Report) {
    for problem in &report.problems {
        anstream::eprintln!("problem: {problem}");
    }
    for empty in &report.empty {
        anstream::eprintln!("warning: {empty}: no URL in it");
    }
    for overload in report.overloads.iter().take(SHOWN_OVERLOADS) {
        anstream::eprintln!("warning: {overload}");
    }
    if let Some(more @ 1..) = report.overloads.len().checked_sub(SHOWN_OVERLOADS) {
        anstream::eprintln!("warning: and {more} more hosts");
    }
    let sources = report.counters.sources + report.problems.len() as u64;
    let invalid = count(report.counters.invalid);
    let outside = match report.counters.outside {
        0 => String::new(),
        number => format!(", {} outside allowed_domains", count(number)),
    };
    let plural = if sources == 1 { "" } else { "s" };
    let problems = match report.problems.len() {
        0 => String::new(),
        number => format!(", {number} of them with problems"),
    };
    anstream::eprintln!(
        "{head}, {invalid} invalid{outside}, from {} source{plural}{problems}",
        count(sources)
    );
}

fn fail(error: RunError) -> Fail {
    match error {
        RunError::Fetch(error) => Fail::usage(error),
        RunError::Spider(_) => Fail::usage(error),
        RunError::Port(error) => Fail::run(error),
    }
}
