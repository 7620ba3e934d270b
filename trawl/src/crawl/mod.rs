//! `trawl crawl`: producer and worker in this process, on an embedded store.

mod running;
mod summary;

use std::fs::{self, Metadata};
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use trawl_backends::embedded::Embedded;
use trawl_backends::sinks::Sinks;
use trawl_cli::{
    ArgumentFlags, DeadLetters, DedupFlags, EndFlags, Ended, Fail, Global, Outcome, Signals, SpiderArg,
    count, print_json, trace,
};
use trawl_common::exit::Exit;
use trawl_common::explain;
use trawl_common::names::WorkerId;
use trawl_common::politeness::rate::Rate;
use trawl_common::ports::SinkFactory;
use trawl_common::settings::{Settings, SinkSettings};
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::folder::Folder;
use trawl_common::spider::{Render, Spider, SpiderOverrides};
use trawl_common::time::UnixMs;
use trawl_producer::{Html, NoStart, RunPlan, RunStart, Source};

use self::running::{Run, is_done};
use self::summary::Summary;
use crate::{spider, state};

/// Maximum number of hosts checked for back-offs in the summary: those with the most URLs.
const MAX_HOSTS: usize = 1000;

/// Default log level: little is logged for a person who watches, unless `-v` or the settings ask for more.
pub(crate) const LOG_LEVEL: &str = "warn";

/// The command-line arguments of `trawl crawl`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Sitemaps, sitemap indexes, feeds, robots.txt, lists of URLs, requests or tasks, or single pages: a URL, a file,
    /// or - [default: what the spider's file says]
    #[arg(required_unless_present = "spider", value_name = "SITEMAP|URL")]
    pub(crate) sources: Vec<Source>,
    /// Crawl by the file of a spider: its name, or the file itself
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) spider: Option<SpiderArg>,
    /// The spider of that name has no file: it extracts what the section `items` of the settings says
    #[arg(long, requires = "spider")]
    pub(crate) no_file: bool,
    #[command(flatten)]
    pub(crate) arguments: ArgumentFlags,
    /// Append items to FILE [default: the sinks of the spider, of the settings, or items.jsonl]; its ending says how:
    /// .jsonl, .csv (then .gz or .zst), .parquet (a folder), .warc.gz (a folder, of whole responses); - is standard
    /// output, as JSON Lines; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Vec<PathBuf>,
    /// Keep the crawl's state in FILE, and go on from it
    #[arg(long, value_name = "FILE", default_value = "crawl.db")]
    pub(crate) state: PathBuf,
    /// Ask each host this often: 60/m, 5/s, unlimited
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// Fetch N pages at once
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<u16>,
    /// Take at most N URLs from the sources
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Follow links, within the hosts of the sources if the spider names no domains
    #[arg(long)]
    pub(crate) follow: bool,
    /// End after N pages done, and skip the rest
    #[arg(long, value_name = "N")]
    pub(crate) max_pages: Option<NonZeroU64>,
    #[command(flatten)]
    pub(crate) dedup: DedupFlags,
    #[command(flatten)]
    pub(crate) end: EndFlags,
    /// Render pages in a browser before they are read [default: what the spider's file says]
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(Render::NAMES).try_map(|name| name.parse::<Render>()))]
    pub(crate) render: Option<Render>,
    /// Allow loopback, private and link-local addresses
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Print the crawl's stats as JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Whether the state file goes when this is over
    #[arg(skip)]
    pub(crate) is_passing: bool,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let mut source = global.source();
        if let Some(rate) = self.rate {
            source.set("politeness.rate", rate);
        }
        if let Some(concurrency) = self.concurrency {
            source.set("worker.concurrency", concurrency);
        }
        if self.allow_private {
            source.set("fetch.allow_private", true);
        }
        source.usual.log.level = LOG_LEVEL.to_owned();
        let settings = global.load(&source)?;
        self.crawl(settings, &global).await
    }

    /// Crawls with these settings until everything is done or a signal arrives.
    pub(crate) async fn crawl(self, settings: Settings, global: &Global) -> Outcome {
        state::sinks_of(&self.out, self.json)?;
        let named = self.spider.clone().unwrap_or_default();
        let arguments = self.arguments.arguments()?;
        let folder = named.folder(&settings, arguments.clone())?.with_overrides(self.overrides());
        let (spider, _) = spider::load(&named, &folder, &settings, self.no_file)?;
        if !settings.webhooks.is_empty() || !spider.webhooks.is_empty() {
            global.say("`trawl crawl` posts nothing to [[webhooks]]: only the workers of a fleet do");
        }
        let start = RunStart::new(&spider, &self.sources);
        let _traces = trace::start(&settings.tracing, "trawl-crawl")?;
        let signals = Signals::listen().map_err(Fail::run)?;
        if !self.state.exists() {
            start.as_ref().map_err(Fail::usage)?;
        }
        let key = settings.secrets.key().map_err(Fail::usage)?;
        let store = Embedded::open(&self.state).map_err(Fail::usage)?.with_log(&settings.log).with_key(key);
        let ended = self
            .crawl_in(&store, Crawling { settings, folder, spider, start, arguments, signals }, global)
            .await;
        // Whatever still runs in the background has it, too.
        store.close().await;
        ended
    }

    async fn crawl_in(&self, store: &Embedded, crawling: Crawling, global: &Global) -> Outcome {
        let Crawling { settings, folder, spider, start, arguments, signals } = crawling;
        // Without a start, it may continue with the remaining URLs.
        let (start, left) = match start {
            Err(error @ NoStart::Nothing(_)) => match state::left_of(store, &spider.name).await? {
                Some(left) => (RunStart::default(), Some(left)),
                None => return Err(Fail::usage(error)),
            },
            start => (start.map_err(Fail::usage)?, None),
        };
        let plan = self.plan(spider, start);
        let default = state::default_sinks(&settings);
        let outs = plan.spider.sinks.as_ref().unwrap_or(&default);
        if let Some(source) = source_among(outs, &plan) {
            return Err(Fail::usage(format!(
                "{} is what this crawl begins with: write items to another file",
                source.display()
            )));
        }
        let worker = WorkerId::of_this_machine();
        let expanded = |sink: &SinkSettings| {
            sink.to_string()
                .replace("{spider}", plan.spider.name.as_str())
                .replace("{worker}", worker.as_str())
        };
        let parts: Vec<String> = outs.iter().map(expanded).collect();
        let sinks = Sinks::new(worker.clone(), default);
        // A sink that cannot be opened is reported before anything is requested.
        drop(sinks.open(&plan.spider).map_err(Fail::usage)?);
        for download in &plan.spider.downloads {
            drop(sinks.open_files(&plan.spider, download).map_err(Fail::usage)?);
        }
        let ports = store.ports(Arc::new(sinks));
        let (crawl, left) = match left {
            Some(left) => (left.crawl_ref(), Some(left.pending)),
            None => state::crawl_of(store, &self.state, &plan.spider.name, &self.sources, &arguments).await?,
        };
        if let Some(left) = left {
            let (state, left) = (self.state.display(), count(left));
            global.say(format_args!("going on with crawl {} from {state}: {left} left", crawl.id));
        }
        // The person who runs the command again has seen to what it was held for.
        if ports.stats.crawl_stats(&crawl.id).await?.is_some_and(|stats| stats.held.is_some()) {
            ports.control.resume(&crawl).await?;
        }
        let progress = global.progress();
        let run = Run { ports, settings: Arc::new(settings), folder, crawl, signals, progress };
        let politeness = plan.spider.politeness.apply(&run.settings.politeness);
        let (stats, report) = run.to_the_end(plan).await?;
        let is_stopped = run.signals.exit().is_some();
        let out = parts.join(", ");
        Summary { stats: &stats, report: &report, out: &out, state: &self.state, is_stopped }.say(global);
        let dead_letters = match self.is_passing {
            true => DeadLetters::Gone,
            false => DeadLetters::File(state::as_argument(&self.state)),
        };
        let is_told = !report.problems.is_empty() || stats.held.is_some();
        let exit = self.end.judge(global, &Ended { stats: &stats, is_of_job: false, is_told, dead_letters });
        let states = store.host_control().hosts().await?;
        let hosts = run.ports.stats.hosts(&run.crawl, MAX_HOSTS).await?;
        for left_alone in explain::not_asked(&states, hosts.iter(), &politeness, UnixMs::now()) {
            global.say(left_alone);
        }
        if self.json {
            print_json(&stats);
        }
        Ok(match run.signals.exit() {
            Some(signal) if !is_done(&stats) => signal,
            _ if stats.held.is_some() => exit.or_worse(Exit::Failed),
            _ => exit,
        })
    }

    /// Returns the flags that override the spider's file.
    fn overrides(&self) -> SpiderOverrides {
        let out = || self.out.iter().cloned().map(SinkSettings::from_path).collect();
        SpiderOverrides {
            rate: self.rate,
            follow: self.follow,
            max_pages: self.max_pages,
            dedup: self.dedup.said(),
            render: self.render,
            sinks: (!self.out.is_empty()).then(out),
        }
    }

    fn plan(&self, spider: Spider, start: RunStart) -> RunPlan {
        RunPlan {
            start,
            spider: Arc::new(spider),
            limit: self.limit,
            // What the spider's file names as a list is none if it is a page, as in a fleet.
            html: if self.sources.is_empty() { Html::IsAnError } else { Html::IsThePage },
            // This process uses the file itself.
            text: None,
            is_new: false,
        }
    }
}

/// A file that is a source of this plan, and one of its sinks.
fn source_among<'a>(sinks: &[SinkSettings], plan: &'a RunPlan) -> Option<&'a Path> {
    let outs: Vec<PathBuf> = sinks.iter().filter_map(|sink| sink.file(&plan.spider.name)).collect();
    let files = plan.start.sources.iter().filter_map(|source| match source {
        Source::File(path) => Some(&**path),
        Source::Web(_) | Source::Stdin => None,
    });
    files.into_iter().find(|file| outs.iter().any(|out| is_same_file(out, file)))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let place = |path| fs::metadata(path).ok().filter(Metadata::is_file).map(|data| (data.dev(), data.ino()));
    place(one).is_some_and(|at| place(other) == Some(at))
}

/// A crawl before its state is looked at.
struct Crawling {
    settings: Settings,
    folder: Folder,
    spider: Spider,
    start: Result<RunStart, NoStart>,
    arguments: Arguments,
    signals: Signals,
}
