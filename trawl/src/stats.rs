//! A crawl's stats for display and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use anstream::println;
use anstyle::{AnsiColor, Style};
use bytesize::ByteSize;
use trawl_cli::{count, items, pages_per_second, time_left};
use trawl_common::explain;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats, HostStats};
use trawl_common::names::SpiderName;
use trawl_common::ports::WorkerState;
use trawl_common::spider::FileHash;

const DIM: Style = Style::new().dimmed();

/// Prefix of reasons that name a limit.
const LEFT_OUT: &str = "left_out";

/// The kind of reasons that count what was handed to other spiders.
const HANDED: &str = "handed";

/// The header of a table of crawls.
pub(crate) fn print_header() {
    println!(
        "{DIM}{:<12} {:<24} {:<11} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>10} {:>9}{DIM:#}",
        "spider",
        "crawl",
        "status",
        "admitted",
        "done",
        "items",
        "failed",
        "skipped",
        "expired",
        "pending",
        "pages/s"
    );
}

/// Prints one crawl as a row of the table.
pub(crate) fn print_row(stats: &CrawlStats) {
    let counts = &stats.counts;
    let (failed, status) = (red_if(counts.failed > 0), status_style(stats));
    println!(
        "{:<12} {:<24} {status}{:<11}{status:#} {:>10} {:>10} {:>10} {failed}{:>8}{failed:#} {:>8} {:>8} {:>10} {:>9.1}",
        stats.spider.as_str(),
        stats.crawl.as_str(),
        status_word(stats),
        count(counts.admitted),
        count(counts.done),
        count(stats.items),
        count(counts.failed),
        count(counts.skipped),
        count(counts.expired),
        count(stats.pending),
        pages_per_second(stats),
    );
}

/// Prints how much a crawl has fetched, in what time, and the estimated remaining time.
pub(crate) fn print_pace(stats: &CrawlStats, pages_per_second: f64) {
    let bytes = size(stats.bytes);
    let took = humantime::format_duration(Duration::from_secs(stats.seconds as u64));
    let rest = match time_left(stats, pages_per_second) {
        Some(rest) => format!(", about {} to go", humantime::format_duration(rest)),
        None => String::new(),
    };
    let items = items(stats);
    println!("\n{bytes} in {took}, {pages_per_second:.1} pages/s{rest}; {items}; dedup = {}", stats.dedup);
}

/// Prints why URLs of a crawl ended, and the fields that pages lack.
pub(crate) fn print_reasons(stats: &CrawlStats) {
    if !stats.reasons.is_empty() {
        println!("\n{DIM}{:<10} {:<24} {:>10}{DIM:#}", "what", "why", "number");
    }
    for (reason, number) in &stats.reasons {
        let (kind, why) = reason.split_once(':').unwrap_or((reason, ""));
        let (style, note) = match kind {
            "missing" => (coloured(AnsiColor::Yellow), "pages without this required field"),
            "dropped" if why == "invalid" => (Style::new(), "no URLs: trawl dlq list --reason invalid"),
            "dropped" if why == "repeat" => (Style::new(), "asked for again within adhoc.again"),
            "dropped" if why == "seen" => (Style::new(), "named by sources, and seen before"),
            "dropped" if why == "failed_before" => {
                (coloured(AnsiColor::Yellow), "seen before, and failed: trawl dlq replay")
            }
            "dropped" if why == "outside" => (Style::new(), "outside allowed_domains"),
            "failed" => (coloured(AnsiColor::Red), ""),
            "done" if why == "without_items" => (Style::new(), "pages that gave no item"),
            "done" if why == "login_form" => {
                (Style::new(), "of these, with a field for a password: a log-in?")
            }
            HANDED => (Style::new(), "handed to this spider, in its crawl adhoc.<spider>"),
            LEFT_OUT => (coloured(AnsiColor::Yellow), "links beyond this limit"),
            _ => (Style::new(), ""),
        };
        println!("{style}{kind:<10}{style:#} {why:<24} {:>10}  {DIM}{note}{DIM:#}", count(*number));
    }
}

/// Describes what limits left out: `300 by depth, 12 by max_repeats`; `None` if nothing.
pub(crate) fn left_out(stats: &CrawlStats) -> Option<String> {
    listed(stats, LEFT_OUT, "by")
}

/// Describes what was handed to other spiders: `12 to tenders`; `None` if nothing.
pub(crate) fn handed(stats: &CrawlStats) -> Option<String> {
    listed(stats, HANDED, "to")
}

/// Lists the numbers of the reasons of this kind: `300 by depth`.
fn listed(stats: &CrawlStats, wanted: &str, word: &str) -> Option<String> {
    let named = stats.reasons.iter().filter_map(|(reason, number)| {
        let (_, name) = reason.split_once(':').filter(|(kind, _)| *kind == wanted)?;
        Some(format!("{} {word} {name}", count(*number)))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Prints the stats of a crawl by host.
pub(crate) fn print_hosts(hosts: &[HostStats]) {
    println!(
        "{DIM}{:<48} {:>10} {:>10} {:>8} {:>8} {:>8} {:>10} {:>10}{DIM:#}",
        "host", "admitted", "done", "failed", "skipped", "expired", "pending", "bytes"
    );
    for host in hosts {
        let counts = &host.counts;
        let failed = red_if(counts.failed > 0);
        println!(
            "{:<48} {:>10} {:>10} {failed}{:>8}{failed:#} {:>8} {:>8} {:>10} {:>10}",
            host.host,
            count(counts.admitted),
            count(counts.done),
            count(counts.failed),
            count(counts.skipped),
            count(counts.expired),
            count(host.pending()),
            size(host.bytes),
        );
    }
}

/// Prints the workers, each with its current problem.
pub(crate) fn print_workers(workers: &[WorkerState]) {
    println!(
        "{DIM}{:<40} {:>9} {:>9} {:>8} {:>8}  health{DIM:#}",
        "worker", "in hand", "pages/s", "p50", "p95"
    );
    for worker in workers {
        let style = red_if(!worker.is_well());
        let draining = if worker.draining { "is to end; " } else { "" };
        println!(
            "{:<40} {:>9} {:>9.1} {:>8} {:>8}  {draining}{style}{}{style:#}",
            worker.worker.as_str(),
            count(worker.in_flight),
            worker.pages_per_second,
            milliseconds(worker.latency.map(|latency| latency.p50_ms)),
            milliseconds(worker.latency.map(|latency| latency.p95_ms)),
            worker.health
        );
    }
    print_browsers(workers);
    print_programs(workers);
}

/// Prints the browsers of workers that have any.
fn print_browsers(workers: &[WorkerState]) {
    let with = workers.iter().filter_map(|worker| Some((worker.worker.as_str(), worker.browsers?)));
    for (number, (worker, browsers)) in with.enumerate() {
        if number == 0 {
            println!(
                "\n{DIM}{:<40} {:>9} {:>9} {:>8} {:>9} {:>8} {:>8} {:>6}{DIM:#}",
                "browsers of", "running", "rendering", "waiting", "memory", "CPU", "rendered", "died"
            );
        }
        let died = red_if(browsers.died > 0);
        println!(
            "{worker:<40} {:>9} {:>9} {:>8} {:>9} {:>8} {:>8} {died}{:>6}{died:#}",
            count(browsers.running),
            count(browsers.pages),
            count(browsers.waiting),
            size(browsers.memory),
            format_args!("{} s", count(browsers.cpu_seconds)).to_string(),
            count(browsers.rendered),
            count(browsers.died),
        );
    }
}

/// Prints the versions of the programs of spiders, each with its workers. More than one of a spider is marked: the
/// files of those workers differ.
fn print_programs(workers: &[WorkerState]) {
    let mut programs: BTreeMap<&SpiderName, BTreeMap<FileHash, Vec<&str>>> = BTreeMap::new();
    for worker in workers {
        for (spider, version) in &worker.programs {
            programs.entry(spider).or_default().entry(*version).or_default().push(worker.worker.as_str());
        }
    }
    if !programs.is_empty() {
        println!("\n{DIM}{:<24} {:<16}  workers{DIM:#}", "program of", "version");
    }
    for (spider, versions) in programs {
        let style = if versions.len() > 1 { coloured(AnsiColor::Yellow) } else { Style::new() };
        let note = if versions.len() > 1 { "  (workers differ)" } else { "" };
        for (version, workers) in versions {
            println!("{:<24} {style}{version}  {}{note}{style:#}", spider.as_str(), workers.join(", "));
        }
    }
}

/// Formats the duration of requests for a table.
fn milliseconds(ms: Option<u64>) -> String {
    ms.map_or("-".to_owned(), |ms| format!("{ms} ms"))
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).display().si().to_string()
}

/// Returns the crawl's status, or its main problem.
pub(crate) fn status_word(stats: &CrawlStats) -> &'static str {
    stats.status.word(stats.incomplete, stats.empty, stats.nothing_new, stats.stalled)
}

/// Returns how the status is shown: a crawl in which something is amiss is not green.
pub(crate) fn status_style(stats: &CrawlStats) -> Style {
    if !explain::notes(stats).is_empty() || stats.stalled {
        return coloured(AnsiColor::Yellow);
    }
    match stats.status {
        CrawlState::Finished => coloured(AnsiColor::Green),
        CrawlState::Running => coloured(AnsiColor::Cyan),
        CrawlState::Pending | CrawlState::Paused | CrawlState::Cancelled => coloured(AnsiColor::Yellow),
    }
}

fn red_if(is_bad: bool) -> Style {
    if is_bad { coloured(AnsiColor::Red) } else { Style::new() }
}

fn coloured(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}
