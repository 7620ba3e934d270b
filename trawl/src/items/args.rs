//! The arguments of `trawl items`.

use clap::ValueEnum;
use trawl_cli::CrawlArg;
use trawl_common::names::{CrawlId, ReaderName, SpiderName};
use trawl_common::spider::item::Item;

use super::place::StartArg;

/// Which items to print, and how.
///
/// Items come in the order in which they were stored. One that a crash had stored twice is left out, if it was among
/// the last 100,000.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    pub(super) format: Format,
    /// Only of this crawl: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "ID")]
    pub(super) crawl: Option<CrawlArg>,
    /// Only of this spider
    #[arg(long, value_name = "NAME")]
    pub(super) spider: Option<SpiderName>,
    /// Columns of CSV: id, url, crawl, ... or a field; `field_url` for a field with such a name [default: those of all
    /// items, which are read twice, 1,000 at most; with --follow those of the first one]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) fields: Vec<String>,
    /// Begin CSV with the mark of UTF-8, without which Excel takes it for the encoding of its language
    #[arg(long)]
    pub(super) bom: bool,
    /// First item to read: first, next (what comes from now on), an offset, or about a time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "PLACE", default_value = "first")]
    pub(super) from: StartArg,
    /// Go on from where the reader NAME was, whatever --from says; its place moves when lines are written
    #[arg(long, value_name = "NAME")]
    pub(super) reader: Option<ReaderName>,
    /// End after N items
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<u64>,
    /// Wait for more when all is read
    #[arg(long)]
    pub(super) follow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values with a line of headings
    Csv,
}

/// The items to print.
pub(super) struct Wanted {
    pub(super) crawl: Option<CrawlId>,
    /// Whether the fleet knows that crawl.
    pub(super) is_known: bool,
    pub(super) spider: Option<SpiderName>,
}

impl Wanted {
    pub(super) fn takes(&self, item: &Item) -> bool {
        self.crawl.as_ref().is_none_or(|crawl| *crawl == item.crawl)
            && self.spider.as_ref().is_none_or(|spider| *spider == item.spider)
    }
}
