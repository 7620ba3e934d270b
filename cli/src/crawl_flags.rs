//! Flags of the commands that start crawls, and of those that wait for their ends.

use trawl_common::exit::Exit;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::spider::{DedupScope, Recrawl};

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
    /// What they say, if anything.
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
    /// The exit code for how a crawl ended.
    pub fn exit(self, stats: &CrawlStats) -> Exit {
        match Exit::from(stats) {
            Exit::Ok if self.fail_if_empty && stats.empty => Exit::Unmet,
            exit => exit,
        }
    }
}
