//! `trawl status`: crawls and their stats.

use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anstyle::Style;
use serde::Serialize;
use trawl_cli::{CrawlArg, Fail, Global, Outcome, Signals, print_json};
use trawl_common::duration;
use trawl_common::exit::Exit;
use trawl_common::explain;
use trawl_common::frontier::crawl::{CrawlStats, HostStats};
use trawl_common::jobs::Job;
use trawl_common::names::CrawlId;

use crate::backend::{Backend, Where};
use crate::stats;

/// Maximum number of queued jobs shown among the crawls.
const MAX_PENDING: usize = 100;

/// Maximum number of sources that are named as they were not read.
const MAX_UNREAD: usize = 5;

/// Maximum number of crawls of which it is shown what is amiss.
const MAX_TROUBLED: usize = 10;

const BOLD: Style = Style::new().bold();

/// The command-line arguments of `trawl status`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this crawl: its id, the beginning of it, or `latest`
    crawl: Option<CrawlArg>,
    /// Show the N hosts of the crawl with the most URLs
    #[arg(long, value_name = "N", default_value_t = 10)]
    hosts: usize,
    /// Show it again every TIME [default: 2s], until the crawl has ended
    #[arg(long, value_name = "TIME", value_parser = duration::parse, num_args = 0..=1, default_missing_value = "2s")]
    watch: Option<Duration>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::look(&global, &self.place).await?;
        // Resolved once, so that `latest` stays the same crawl.
        let crawl = match &self.crawl {
            Some(arg) => Some(backend.crawl(arg).await?.crawl),
            None => None,
        };
        let Some(period) = self.watch else {
            self.show(&backend, crawl.as_ref(), None).await?;
            return Ok(Exit::Ok);
        };
        let signals = Signals::listen().map_err(Fail::run)?;
        let mut before = None;
        loop {
            if std::io::stdout().is_terminal() && !self.json {
                // Moves the cursor home and clears the screen below, also without colors.
                let _ = std::io::stdout().write_all(b"\x1b[H\x1b[2J");
            }
            let shown = self.show(&backend, crawl.as_ref(), before.as_ref()).await?;
            if crawl.is_some() && shown.iter().all(|stats| stats.status.is_over()) {
                return Ok(Exit::Ok);
            }
            before = Some((shown, Instant::now()));
            tokio::select! {
                () = signals.stop().cancelled() => return Ok(Exit::Ok),
                () = tokio::time::sleep(period) => {}
            }
        }
    }

    /// Shows one crawl in full, or each in a line. If an earlier result is given, the pace is computed since then.
    async fn show(
        &self,
        backend: &Backend,
        crawl: Option<&CrawlId>,
        before: Option<&(Vec<CrawlStats>, Instant)>,
    ) -> Result<Vec<CrawlStats>, Fail> {
        match crawl {
            Some(id) => self.show_one(backend, id, before).await,
            None => self.show_all(backend).await,
        }
    }

    async fn show_one(
        &self,
        backend: &Backend,
        id: &CrawlId,
        before: Option<&(Vec<CrawlStats>, Instant)>,
    ) -> Result<Vec<CrawlStats>, Fail> {
        let stats = backend.crawl_stats(id).await?;
        let hosts = backend.stats.hosts(&stats.crawl_ref(), self.hosts).await?;
        let pages = backend.pages();
        let waits = backend.explainer(&*pages).waits(&stats).await?;
        if self.json {
            print_json(&InFull { stats: &stats, hosts: &hosts, waits: &waits });
        } else {
            stats::print_header();
            stats::print_row(&stats);
            stats::print_pace(&stats, pace(&stats, before));
            stats::print_reasons(&stats);
            if !hosts.is_empty() {
                anstream::println!();
                stats::print_hosts(&hosts);
            }
            explain::notes(&stats).iter().for_each(|note| anstream::println!("note: {note}"));
            if stats.incomplete {
                let unread = explain::unread(&*backend.logs, id, MAX_UNREAD).await?;
                unread.iter().for_each(|source| anstream::println!("note: {source}"));
            }
            waits.iter().for_each(|waits| anstream::println!("waits: {waits}"));
        }
        Ok(vec![stats])
    }

    async fn show_all(&self, backend: &Backend) -> Result<Vec<CrawlStats>, Fail> {
        let mut all = backend.stats.crawls().await?;
        let waiting = backend.jobs.queued(MAX_PENDING).await?;
        let not_begun = |job: &&Job| all.iter().all(|stats| stats.crawl != job.new.id);
        let pending: Vec<_> = waiting.iter().filter(not_begun).map(Job::stats_before_it_begins).collect();
        all.splice(..0, pending);
        if self.json {
            all.iter().for_each(print_json);
            return Ok(all);
        }
        if all.is_empty() {
            backend.say("no crawl yet: start one with `producer <SITEMAP>`");
        } else {
            stats::print_header();
            all.iter().for_each(stats::print_row);
        }
        let workers = backend.stats.workers().await?;
        if !workers.is_empty() {
            anstream::println!();
            stats::print_workers(&workers);
        }
        let pages = backend.pages();
        let troubles = backend.explainer(&*pages).workers().await?;
        if !troubles.is_empty() {
            anstream::println!();
        }
        troubles.iter().for_each(|trouble| anstream::println!("{trouble}"));
        self.show_troubles(backend, &all, &troubles).await?;
        Ok(all)
    }

    /// Shows what is amiss with crawls: of those that go on, what they wait for, and of those of a spider that are
    /// over, what is amiss with the latest. What is `told` already is left out.
    async fn show_troubles(
        &self,
        backend: &Backend,
        all: &[CrawlStats],
        told: &[String],
    ) -> Result<(), Fail> {
        let pages = backend.pages();
        let explainer = backend.explainer(&*pages);
        let (mut spiders, mut shown) = (HashSet::new(), 0);
        for stats in all {
            let is_old = stats.status.is_over() && !spiders.insert(&stats.spider);
            let mut words = if is_old { Vec::new() } else { explain::notes(stats) };
            if stats.pending > 0 {
                words.extend(explainer.waits(stats).await?);
            }
            words.retain(|words| told.iter().all(|told| !words.contains(told.as_str())));
            if words.is_empty() {
                continue;
            }
            if shown == MAX_TROUBLED {
                anstream::println!("\nand others: `trawl status CRAWL` says what is amiss with each");
                break;
            }
            shown += 1;
            anstream::println!("\n{BOLD}{} {}{BOLD:#}", stats.spider, stats.crawl);
            words.iter().for_each(|words| anstream::println!("  {words}"));
        }
        Ok(())
    }
}

/// A crawl's stats, with those by host.
#[derive(Serialize)]
struct InFull<'a> {
    #[serde(flatten)]
    stats: &'a CrawlStats,
    hosts: &'a [HostStats],
    /// The reasons why its URLs are waiting.
    waits: &'a [String],
}

fn pace(stats: &CrawlStats, before: Option<&(Vec<CrawlStats>, Instant)>) -> f64 {
    match before {
        Some((shown, since)) if !stats.status.is_over() => {
            let before = shown.first().map_or(0, |stats| stats.counts.handled());
            stats.counts.handled().saturating_sub(before) as f64 / since.elapsed().as_secs_f64().max(0.001)
        }
        _ => trawl_cli::pages_per_second(stats),
    }
}
