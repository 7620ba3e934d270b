//! The command `producer`: one run, then it ends. Safe to start from cron.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anstream::println;
use clap::Parser;
use serde::Serialize;
use trawl_backends::embedded::Embedded;
use trawl_backends::fleet;
use trawl_cli::{
    ArgumentFlags, CrawlArg, DeadLetters, DedupFlags, EndFlags, Ended, Fail, Global, Outcome,
    Progress as ProgressLine, Signals, SpiderArg, await_end, count, counted, items, metrics, print_json,
    summary, trace,
};
use trawl_common::exit::Exit;
use trawl_common::frontier::DedupScope;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::lane::Lane;
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{ErrorKind, Ports, Stats};
use trawl_common::request::{MAX_DATA_BYTES, RequestView};
use trawl_common::settings::{IfRunning, Settings};
use trawl_common::spider::folder::Folder;
use trawl_common::spider::{Spider, SpiderOverrides, SpiderText};
use trawl_common::text::printable;

use crate::running::{self, Beginning};
use crate::{
    Candidate, Counters, Finding, Html, Progress, Report, RunError, RunPlan, RunStart, Source, preview, run,
};

/// Interval at which the progress line is drawn.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of overloaded hosts that are named.
const MAX_OVERLOADS: usize = 10;

/// The command-line arguments of the producer.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Sitemaps, sitemap indexes, feeds, robots.txt, or lists of URLs, requests or tasks: a URL, a file, or - for
    /// standard input [default: what the spider's file says]
    #[arg(required_unless_present = "spider", value_name = "SOURCE")]
    sources: Vec<Source>,
    /// The spider that the URLs are for: its name, or its file, by whose name workers find it [default: default]
    #[arg(long, value_name = "NAME|FILE")]
    spider: Option<SpiderArg>,
    #[command(flatten)]
    arguments: ArgumentFlags,
    /// The spider of that name has no file: it extracts what the section `items` of the settings says
    #[arg(long, requires = "spider")]
    no_file: bool,
    /// The crawl to open, or to continue, by its whole id; `latest` is the spider's newest [default: a new one, named
    /// by the time]
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlArg>,
    /// Show what would be routed where, and touch nothing
    #[arg(long)]
    dry_run: bool,
    /// When a crawl of the spider is not over: exit (with code 0), join it, or start another [default: exit with
    /// --recrawl, else start]
    #[arg(long, value_name = "WHAT", conflicts_with = "crawl")]
    if_running: Option<IfRunning>,
    #[command(flatten)]
    dedup: DedupFlags,
    /// Take at most N URLs
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Wait until every URL of the crawl has been fetched or has failed
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    #[command(flatten)]
    end: EndFlags,
    /// Print what was done as one JSON object at the end; with --dry-run, one for each URL before it
    #[arg(long)]
    json: bool,
}

/// Read sitemaps and put every URL that is new into its queue
#[derive(Parser)]
#[command(name = "producer", version, long_version = trawl_cli::version())]
struct Program {
    #[command(flatten)]
    args: Args,
    #[command(flatten)]
    global: Global,
}

/// Runs the program `producer`; `trawl producer` is the same.
pub fn main() -> ExitCode {
    let Program { args, global } = Program::parse();
    trawl_cli::main("producer", global.color, args.run(global))
}

impl Args {
    /// Reads the settings, connects, and runs.
    pub async fn run(self, global: Global) -> Outcome {
        if self.end.fail_if_empty && !self.wait {
            return Err(Fail::usage("--fail-if-empty judges a crawl that has ended: it needs --wait"));
        }
        let settings = Arc::new(global.load(&global.source())?);
        let signals = Signals::listen().map_err(Fail::run)?;
        // Its waits are shown in the progress line, and in the log.
        let _metrics = metrics::serve(&settings.metrics, || None).await?;
        let _traces = trace::start(&settings.tracing, "trawl-producer")?;
        let spider = self.spider.clone().unwrap_or_default();
        let overrides = SpiderOverrides { dedup: self.dedup.said(), ..SpiderOverrides::default() };
        let arguments = self.arguments.arguments()?;
        let folder = spider.folder(&settings, arguments.clone())?.with_overrides(overrides);
        let text = match arguments.is_empty() {
            true => None,
            false => Some(self.text_with_values(&spider, &folder)?),
        };
        let spider = spider.load(&folder, &settings, self.no_file)?;
        let start = RunStart::new(&spider, &self.sources).map_err(Fail::usage)?;
        let (spider, html) = (Arc::new(spider), Html::IsAnError);
        let plan = RunPlan { spider, start, limit: self.limit, html, text, is_new: false };
        if self.dry_run {
            let alone = Embedded::in_memory().map_err(Fail::run)?;
            let show = if self.json { show_json } else { show };
            let spider = Arc::clone(&plan.spider);
            let report = preview(settings, alone.hosts(), plan, signals.stop(), show).await.map_err(fail)?;
            let found = counted(report.counters.found, "URL");
            eprint_report(&global, &format!("{found} would be admitted, if new"), &report);
            if self.json {
                print_json(&Summary { crawl: None, spider: &spider.name, report: &report, stats: None });
            }
            return Ok(exit(&report, &signals));
        }
        let id = WorkerId::of_this_machine();
        let ports = tokio::select! {
            () = signals.stop().cancelled() => return Ok(signals.exit().unwrap_or(Exit::Failed)),
            connected = fleet::connect(&settings, &id) => connected?,
        };
        match self.beginning(&*ports.stats, &settings, &plan.spider).await? {
            Beginning::New(crawl) => {
                let plan = RunPlan { is_new: true, ..plan };
                self.produce(&ports, &settings, plan, &crawl, &signals, &global).await
            }
            Beginning::Known(crawl) => self.produce(&ports, &settings, plan, &crawl, &signals, &global).await,
            Beginning::Not(running) => Ok(self.leave_alone(&global, *running)),
        }
    }

    /// Returns the spider's text with its arguments for the workers, whose own files do not have these values.
    fn text_with_values(&self, spider: &SpiderArg, folder: &Folder) -> Result<SpiderText, Fail> {
        let without = || Fail::usage("the spider has no file, and so no arguments");
        spider.text(folder)?.map(SpiderText::from).ok_or_else(without)
    }

    /// Returns the selected crawl, or else the one that the spider's running crawl allows.
    async fn beginning(
        &self,
        stats: &dyn Stats,
        settings: &Settings,
        spider: &Spider,
    ) -> Result<Beginning, Fail> {
        match &self.crawl {
            None => {
                let dedup = spider.dedup.unwrap_or(DedupScope::Spider);
                Ok(running::beginning(stats, &spider.name, dedup, self.if_running(settings)).await?)
            }
            Some(CrawlArg::Latest) => {
                let latest = running::latest(stats, &spider.name).await?;
                let none = || Fail::usage(format!("there is no crawl of spider {} yet", spider.name));
                Ok(Beginning::Known(latest.ok_or_else(none)?.crawl_ref()))
            }
            Some(CrawlArg::Named(id)) => {
                let crawl = CrawlRef { id: id.clone(), spider: spider.name.clone() };
                if crawl.is_adhoc() {
                    let message =
                        format!("{id} is for what others publish, and never ends: choose another crawl");
                    return Err(Fail::usage(message));
                }
                Ok(Beginning::Known(crawl))
            }
        }
    }

    fn if_running(&self, settings: &Settings) -> Option<IfRunning> {
        self.if_running.or(settings.producer.if_running)
    }

    /// Whether the run may do nothing: no crawl was selected, and none has to be started.
    fn may_do_nothing(&self, settings: &Settings) -> bool {
        self.crawl.is_none() && self.if_running(settings) != Some(IfRunning::Start)
    }

    async fn produce(
        &self,
        ports: &Ports,
        settings: &Arc<Settings>,
        plan: RunPlan,
        crawl: &CrawlRef,
        signals: &Signals,
        global: &Global,
    ) -> Outcome {
        let (progress, line) = (Arc::new(Progress::default()), global.progress());
        let drawing = tokio::spawn(draw(line.clone(), Arc::clone(&progress)));
        let result = run(ports, Arc::clone(settings), plan, crawl, progress, signals.stop()).await;
        drawing.abort();
        line.clear();
        let report = match result {
            // Another run is reading sources, for a crawl that started after this run had checked, or that may run
            // beside others.
            Err(RunError::Port(error)) if error.kind == ErrorKind::Busy && self.may_do_nothing(settings) => {
                let other = running::running(&*ports.stats, &crawl.spider).await?;
                return other.map(|stats| self.leave_alone(global, stats)).ok_or_else(|| Fail::run(error));
            }
            result => result.map_err(fail)?,
        };
        let (new, seen) = (counted(report.counters.new, "URL"), count(report.counters.seen));
        let head = format!("{new} new in crawl {}, {seen} seen before{}", crawl.id, spared(&report.counters));
        eprint_report(global, &head, &report);
        self.name(crawl);
        let stats = match self.wait && !report.stopped {
            true => ended(&*ports.stats, crawl, signals, &line).await?,
            false => None,
        };
        let dead_letters = DeadLetters::Fleet;
        let exit = match &stats {
            Some(stats) => {
                global.say(format_args!("{}; {}", summary(stats), items(stats)));
                let is_told = !report.problems.is_empty();
                self.end.judge(global, &Ended { stats, is_of_job: false, is_told, dead_letters })
            }
            None => {
                let Counters { new, invalid, failed_before, .. } = report.counters;
                if new == 0 && failed_before > 0 {
                    dead_letters.warn_nothing_new(&crawl.spider, failed_before);
                } else {
                    dead_letters.say_failed_before(global, &crawl.spider, failed_before);
                }
                dead_letters.say_invalid(&crawl.id, invalid);
                exit(&report, signals)
            }
        };
        if self.json {
            print_json(&Summary { crawl: Some(crawl), spider: &crawl.spider, report: &report, stats });
        }
        Ok(exit)
    }

    /// Reports that there was nothing to do, which is no failure.
    fn leave_alone(&self, global: &Global, running: CrawlStats) -> Exit {
        global.say(running::message(&running));
        let crawl = running.crawl_ref();
        self.name(&crawl);
        if self.json {
            let report = Report::default();
            print_json(&Summary {
                crawl: Some(&crawl),
                spider: &crawl.spider,
                report: &report,
                stats: Some(running),
            });
        }
        Exit::Ok
    }

    /// Prints the id to standard output, for scripts that wait for the crawl; with --json it is in the object.
    fn name(&self, crawl: &CrawlRef) {
        if !self.json {
            println!("{}", crawl.id);
        }
    }
}

/// The JSON output of a run.
#[derive(Serialize)]
struct Summary<'a> {
    /// `None` for a dry run.
    #[serde(serialize_with = "id_of")]
    crawl: Option<&'a CrawlRef>,
    spider: &'a SpiderName,
    #[serde(flatten)]
    report: &'a Report,
    /// The stats of the crawl at its end, or of the running crawl that was left alone.
    #[serde(rename = "books")]
    stats: Option<CrawlStats>,
}

fn id_of<S: serde::Serializer>(crawl: &Option<&CrawlRef>, to: S) -> Result<S::Ok, S::Error> {
    crawl.map(|crawl| &crawl.id).serialize(to)
}

/// Describes the number of pages that are not requested, if any.
fn spared(counters: &Counters) -> String {
    let parts = [(counters.unchanged, "unchanged by their sitemaps"), (counters.fresh, "fetched lately")];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    parts.map(|(number, what)| format!(", {} {what}", count(*number))).collect()
}

/// Prints one finding of a dry run: lane, time to live, URL, and the request.
fn show(finding: &Finding) {
    match finding {
        Finding::Page(Candidate { page, ttl, .. }) => {
            let ttl = ttl.map_or_else(|| "-".to_owned(), |ttl| humantime::format_duration(ttl).to_string());
            let asks = page.work.request().map(|request| format!("  ({})", RequestView::from(&request.new)));
            let asks = printable(&asks.unwrap_or_default(), MAX_DATA_BYTES);
            println!("{:<9} {:<7} {}{asks}", page.lane, ttl, page.work);
        }
        Finding::Invalid { text, reason } => println!("{:<9} {:<7} {text}  ({reason})", "invalid", "-"),
    }
}

/// Prints one finding of a dry run as JSON.
fn show_json(finding: &Finding) {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Shown<'a> {
        Page {
            url: &'a str,
            lane: Lane,
            ttl_seconds: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            request: Option<RequestView>,
        },
        Invalid {
            invalid: &'a str,
            reason: &'a str,
        },
    }
    print_json(&match finding {
        Finding::Page(Candidate { page, ttl, .. }) => Shown::Page {
            url: page.work.as_str(),
            lane: page.lane,
            ttl_seconds: ttl.map(|ttl| ttl.as_secs()),
            request: page.work.request().map(|request| RequestView::from(&request.new)),
        },
        Finding::Invalid { text, reason } => Shown::Invalid { invalid: text, reason },
    });
}

async fn draw(line: ProgressLine, progress: Arc<Progress>) {
    loop {
        let now = progress.snapshot();
        let backlog = progress.backlog().map(|pending| {
            format!(
                "waiting: {} still to be fetched (producer.max_backlog, max_backlog_bytes)",
                counted(pending, "URL")
            )
        });
        let waits = backlog.or_else(|| progress.awaited_host()).map(|waits| format!("; {waits}"));
        line.show(format!(
            "{} read, {} found, {} new{}",
            counted(now.sources, "source"),
            counted(now.found, "URL"),
            count(now.new),
            waits.unwrap_or_default(),
        ));
        tokio::time::sleep(DRAW_INTERVAL).await;
    }
}

/// Waits for the end of the crawl and of the work that it handed on, and returns its stats; `None` if a signal came
/// first.
async fn ended(
    stats: &dyn Stats,
    crawl: &CrawlRef,
    signals: &Signals,
    line: &ProgressLine,
) -> Result<Option<CrawlStats>, Fail> {
    tokio::select! {
        () = signals.stop().cancelled() => Ok(None),
        ended = await_end(stats, &crawl.id, line) => ended.map(Some),
    }
}

fn exit(report: &Report, signals: &Signals) -> Exit {
    match signals.exit() {
        Some(signal) => signal,
        None if !report.problems.is_empty() => Exit::Failed,
        // Some of many entries may be wrong; none that is right is a mistake.
        None if report.counters.found == 0 && report.counters.invalid > 0 => Exit::FailedUrls,
        None => Exit::Ok,
    }
}

/// Prints a line for each problem or warning, then the summary of the run, which starts with `head`.
fn eprint_report(global: &Global, head: &str, report: &Report) {
    for problem in &report.problems {
        anstream::eprintln!("problem: {problem}");
    }
    for empty in &report.empty {
        anstream::eprintln!("warning: {empty}: no URL in it");
    }
    for overload in report.overloads.iter().take(MAX_OVERLOADS) {
        anstream::eprintln!("warning: {overload}");
    }
    if let Some(more @ 1..) = report.overloads.len().checked_sub(MAX_OVERLOADS) {
        anstream::eprintln!("warning: and {}", counted(more as u64, "more host"));
    }
    let sources = report.counters.sources + report.problems.len() as u64;
    let invalid = count(report.counters.invalid);
    let outside = match report.counters.outside {
        0 => String::new(),
        number => format!(", {} outside allowed_domains", count(number)),
    };
    let problems = match report.problems.len() {
        0 => String::new(),
        number => format!(", {number} of them with problems"),
    };
    global.say(format_args!(
        "{head}, {invalid} invalid{outside}, from {}{problems}",
        counted(sources, "source")
    ));
}

fn fail(error: RunError) -> Fail {
    match error {
        RunError::Fetch(error) => Fail::usage(error),
        RunError::Spider(_) => Fail::usage(error),
        RunError::Threads(_) => Fail::run(error),
        RunError::Port(error) => error.into(),
    }
}
