//! `trawl items`: the stream of items, read from any place.

mod place;
mod reading;
mod recent;
mod rows;

use std::io::{BufWriter, IsTerminal};

use clap::ValueEnum;
use place::{Bookmark, Start};
use reading::Reading;
use rows::{Csv, JsonLines, Rows};
use trawl_backends::rabbitmq::ItemStream;
use trawl_backends::redis::{self, Readers};
use trawl_cli::{CrawlArg, Fail, Global, Outcome, Signals};
use trawl_common::exit::Exit;
use trawl_common::names::{CrawlId, ReaderName, SpiderName};
use trawl_common::settings::Settings;
use trawl_common::spider::item::Item;

use crate::backend::Backend;

/// Which items to print, and how.
///
/// Items come in the order in which they were stored. One that a crash had stored twice is left out, if it was among
/// the last 100,000.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Only of this crawl: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlArg>,
    /// Only of this spider
    #[arg(long, value_name = "NAME")]
    spider: Option<SpiderName>,
    /// Columns of CSV: id, url, crawl, ... or a field; `fields.url` for a field with such a name [default: those of the
    /// first item]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    fields: Vec<String>,
    /// Where to begin: first, next (what comes from now on), an offset, or about a time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "PLACE", default_value = "first")]
    from: Start,
    /// Go on from where the reader NAME was, whatever --from says; its place moves when lines are written
    #[arg(long, value_name = "NAME")]
    reader: Option<ReaderName>,
    /// End after N items
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Wait for more when all is read
    #[arg(long)]
    follow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values with a line of headings
    Csv,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let settings = global.load(&global.source())?;
        if self.format != Format::Csv && !self.fields.is_empty() {
            return Err(Fail::usage("--fields names the columns of CSV: say --format csv"));
        }
        let signals = Signals::listen().map_err(Fail::run)?;
        let ended = tokio::select! {
            ended = self.read(&settings, &global) => ended,
            () = signals.stop().cancelled() => Ok(Exit::Ok),
        };
        ended.map(|exit| signals.exit().unwrap_or(exit))
    }

    async fn read(&self, settings: &Settings, global: &Global) -> Outcome {
        let crawl = match &self.crawl {
            Some(arg) => Some(crawl(arg, settings, global).await?),
            None => None,
        };
        let wanted = Wanted { crawl, spider: self.spider.clone() };
        let stream = ItemStream::new(&settings.rabbitmq, &settings.items, settings.queues.topology)?;
        let bookmark = match &self.reader {
            Some(name) => {
                let readers = Readers::new(redis::connect(&settings.redis).await?);
                Some(Bookmark::open(readers, name.clone()).await?)
            }
            None => None,
        };
        Reading::new(self, wanted, stream, bookmark, self.rows()).run().await
    }

    fn rows(&self) -> Box<dyn Rows> {
        let out = BufWriter::new(std::io::stdout());
        match self.format {
            Format::Jsonl => Box::new(JsonLines::new(out, std::io::stdout().is_terminal())),
            Format::Csv => Box::new(Csv::new(out, &self.fields)),
        }
    }
}

/// The crawl that is meant. One that the fleet has forgotten may have items, by whose whole id it is named.
async fn crawl(arg: &CrawlArg, settings: &Settings, global: &Global) -> Result<CrawlId, Fail> {
    let backend = Backend::of_fleet(settings.clone(), global).await?;
    match (arg.books(&*backend.stats).await?, arg) {
        (None, CrawlArg::Named(id)) => Ok(id.clone()),
        _ => Ok(backend.crawl(arg).await?.crawl),
    }
}

/// Which items are asked for.
struct Wanted {
    crawl: Option<CrawlId>,
    spider: Option<SpiderName>,
}

impl Wanted {
    fn takes(&self, item: &Item) -> bool {
        self.crawl.as_ref().is_none_or(|crawl| *crawl == item.crawl)
            && self.spider.as_ref().is_none_or(|spider| *spider == item.spider)
    }
}
