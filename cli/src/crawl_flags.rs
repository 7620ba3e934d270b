//! Flags of the commands that start crawls, and of those that wait for their ends.

use trawl_common::exit::Exit;
use trawl_common::explain;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::{DedupScope, Recrawl};

use crate::{DeadLetters, Global};

/// Which URLs a crawl takes for seen.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct DedupFlags {
    /// Fetch again what was crawled before: never, changed (if it has), always, or what is older than an AGE, as 12h
    #[arg(long, value_name = "WHEN", conflicts_with = "dedup")]
    pub recrawl: Option<Recrawl>,
    /// Leave out URLs that were seen: by any crawl of the spider (spider), by this crawl (crawl), or that were fetched
    /// less than an AGE ago, as 12h [default: what the spider's file says; else of a job crawl, and spider of other
    /// crawls]
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
    /// Says what is amiss with a crawl, and returns the exit code for how it ended.
    pub fn judge(self, global: &Global, ended: &Ended<'_>) -> Exit {
        let Ended { stats, is_of_job, is_told, dead_letters } = ended;
        let unmet = if *is_of_job { Vec::new() } else { explain::unmet(stats) };
        let warnings = [
            explain::incomplete(stats).filter(|_| !is_told),
            dead_letters.flags(&stats.crawl).and_then(|flags| explain::mostly_failed(stats, &flags)),
            explain::ended_without_items(stats),
            explain::without_fields(stats),
            explain::missing_fields(stats),
        ];
        for what in warnings.iter().flatten().chain(&unmet) {
            anstream::eprintln!("warning: {what}");
        }
        explain::nothing_new(stats).into_iter().for_each(|nothing_new| global.say(nothing_new));
        match explain::empty(stats, &dead_letters.place()) {
            Some(empty) if stats.failed_before() > 0 => anstream::eprintln!("warning: {empty}"),
            Some(empty) => global.say(empty),
            None => dead_letters.say_failed_before(global, &stats.spider, stats.failed_before()),
        }
        dead_letters.say(stats);
        let is_unmet = !unmet.is_empty() || (self.fail_if_empty && stats.gave_nothing());
        Exit::from(*stats).or_worse(if is_unmet { Exit::Unmet } else { Exit::Ok })
    }
}

/// A crawl that has ended.
pub struct Ended<'a> {
    /// Its stats.
    pub stats: &'a CrawlStats,
    /// Whether a job has started it, which has among its problems what the crawl yields too little of.
    pub is_of_job: bool,
    /// Whether it was said what kept its sources from being read.
    pub is_told: bool,
    /// The place of its dead letters.
    pub dead_letters: DeadLetters,
}
