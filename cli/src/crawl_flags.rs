//! Flags of the commands that start crawls, and of those that wait for their ends.

use trawl_common::exit::Exit;
use trawl_common::explain;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::{DedupScope, Recrawl};
use trawl_common::spider::Expect;

use crate::Global;

/// Which URLs a crawl takes for seen.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct DedupFlags {
    /// Fetch again what was crawled before: never, changed (if it has), always, or what is older than an AGE, as 12h
    #[arg(long, value_name = "WHEN", conflicts_with = "dedup")]
    pub recrawl: Option<Recrawl>,
    /// Leave out URLs that were seen: by any crawl of the spider (spider), by this crawl (crawl), or that were fetched less than an
    /// AGE ago, as 12h [default: what the spider's file says; else of a job crawl, and spider of other crawls]
    #[arg(long, value_name = "BY")]
    pub dedup: Option<DedupScope>,
}

impl DedupFlags {
    /// Returns the choice that was made, if any was.
    pub fn said(self) -> Option<DedupScope> {
        DedupScope::said(self.dedup, self.recrawl)
    }
}

/// How a crawl's end is judged.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct EndFlags {
    /// Exit with code 6 if nothing came of the crawl: no page was fetched, and no task done
    #[arg(long)]
    pub fail_if_empty: bool,
}

impl EndFlags {
    /// Says what is amiss with a crawl, and returns the exit code for how it ended. `expect` is what its spider expects of it, and
    /// `is_told` whether it was said what kept its sources from being read.
    pub fn judge(self, global: &Global, stats: &CrawlStats, expect: &Expect, is_told: bool) -> Exit {
        let unmet = if stats.status.is_over() { expect.unmet(stats) } else { Vec::new() };
        let incomplete = explain::incomplete(stats).filter(|_| !is_told);
        for what in incomplete.iter().chain(&explain::without_items(stats)).chain(&unmet) {
            anstream::eprintln!("warning: {what}");
        }
        if let Some(empty) = explain::empty(stats) {
            global.say(empty);
        }
        match Exit::from(stats) {
            Exit::Ok if !unmet.is_empty() || (self.fail_if_empty && stats.empty) => Exit::Unmet,
            exit => exit,
        }
    }
}
