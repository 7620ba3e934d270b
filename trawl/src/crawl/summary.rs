//! The report to a person at the end of a crawl.

use std::path::Path;

use trawl_cli::{Global, count, counted, items, summary};
use trawl_common::frontier::crawl::CrawlStats;
use trawl_producer::{Counters, Report};

use crate::stats;

/// The results of a crawl.
pub(super) struct Summary<'a> {
    pub(super) stats: &'a CrawlStats,
    pub(super) report: &'a Report,
    /// The destinations of its items.
    pub(super) out: &'a str,
    /// Its state file.
    pub(super) state: &'a Path,
    /// Whether a signal stopped it.
    pub(super) is_stopped: bool,
}

impl Summary<'_> {
    /// Reports the results, and each problem.
    pub(super) fn say(&self, global: &Global) {
        let Self { stats, report, out, .. } = *self;
        for problem in &report.problems {
            anstream::eprintln!("problem: {problem}");
        }
        for empty in &report.empty {
            anstream::eprintln!("warning: {empty}: no URL in it");
        }
        let invalid = report.counters.invalid;
        let outside = match report.counters.outside {
            0 => String::new(),
            number => format!(", {} outside allowed_domains", count(number)),
        };
        global.say(format_args!(
            "{}, {} invalid{outside}; {} -> {out}",
            summary(stats),
            count(invalid),
            items(stats),
        ));
        say_what_was_left(global, &report.counters);

        if let Some(left_out) = stats::left_out(stats) {
            global.say(format_args!("links left out: {left_out} (docs/spiders.md, \"Where it goes\")"));
        }
        if let Some(handed) = stats::handed(stats) {
            global.say(format_args!("handed to other spiders: {handed}"));
        }
        if self.is_stopped {
            let left = counted(stats.pending, "URL");
            anstream::eprintln!(
                "stopped with {left} left: the same command goes on from {}",
                self.state.display()
            );
        }
        if let Some(why) = &stats.held {
            let left = counted(stats.pending, "URL");
            anstream::eprintln!("problem: {why}: {left} left: see to it, and the same command goes on");
        }
    }
}

/// Reports entries of the sources that the crawl left out.
fn say_what_was_left(global: &Global, counters: &Counters) {
    let Counters { unchanged, fresh, .. } = *counters;
    if unchanged + fresh > 0 {
        let (unchanged, fresh) = (count(unchanged), count(fresh));
        global.say(format_args!(
            "not asked for: {unchanged} unchanged by their sitemaps, {fresh} fetched lately"
        ));
    }
}
