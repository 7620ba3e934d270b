//! `trawl items`: reads the stream of items from any position.

mod args;
mod place;
mod reading;
mod recent;
mod rows;

use std::io::{BufWriter, IsTerminal, Stdout, Write};

pub(crate) use args::Args;
use args::{Format, Wanted};
use place::Bookmark;
use reading::Reading;
use rows::{Census, Csv, JsonLines, Rows};
use trawl_backends::rabbitmq::ItemStream;
use trawl_backends::redis::{self, Readers};
use trawl_cli::{CrawlArg, Fail, Global, Outcome, Signals};
use trawl_common::exit::Exit;
use trawl_common::names::CrawlId;
use trawl_common::settings::Settings;

use crate::backend::Backend;

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let settings = global.load(&global.source())?;
        if self.format != Format::Csv && !self.fields.is_empty() {
            return Err(Fail::usage("--fields names the columns of CSV: say --format csv"));
        }
        if self.format != Format::Csv && self.bom {
            return Err(Fail::usage("--bom is for CSV: say --format csv"));
        }
        let signals = Signals::listen().map_err(Fail::run)?;
        let ended = tokio::select! {
            ended = self.read(&settings, &global) => ended,
            () = signals.stop().cancelled() => Ok(Exit::Ok),
        };
        ended.map(|exit| signals.exit().unwrap_or(exit))
    }

    async fn read(&self, settings: &Settings, global: &Global) -> Outcome {
        let (crawl, is_known) = match &self.crawl {
            Some(arg) => crawl(arg, settings, global).await.map(|(id, is_known)| (Some(id), is_known))?,
            None => (None, false),
        };
        let wanted = Wanted { crawl, is_known, spider: self.spider.clone() };
        let stream = ItemStream::new(&settings.rabbitmq, &settings.items, settings.queues.topology)?;
        let bookmark = match &self.reader {
            Some(name) => {
                let readers = Readers::new(redis::connect(&settings.redis).await?);
                Some(Bookmark::open(readers, name.clone()).await?)
            }
            None => None,
        };
        let place = bookmark.as_ref().and_then(|bookmark| bookmark.at);
        let reading = |rows| Reading::new(self, &wanted, &stream, place, rows);
        if self.format == Format::Csv && self.fields.is_empty() && !self.follow {
            let census = Census::default();
            let end = reading(Box::new(census.clone())).read_all().await?;
            let rows = Csv::with(self.out()?, census.columns());
            return reading(Box::new(rows)).with_bookmark(bookmark).until(end).run().await;
        }
        let rows: Box<dyn Rows> = match self.format {
            Format::Jsonl => Box::new(JsonLines::new(self.out()?, std::io::stdout().is_terminal())),
            Format::Csv => Box::new(Csv::new(self.out()?, &self.fields)),
        };
        reading(rows).with_bookmark(bookmark).run().await
    }

    /// Opens standard output, and writes the UTF-8 byte order mark if requested.
    fn out(&self) -> Result<BufWriter<Stdout>, Fail> {
        let mut out = BufWriter::new(std::io::stdout());
        let mark = if self.bom { "\u{feff}" } else { "" };
        out.write_all(mark.as_bytes()).map_err(|error| Fail::run(format!("cannot write: {error}")))?;
        Ok(out)
    }
}

/// Returns the selected crawl, and whether the fleet knows it. A crawl that it has forgotten may still have items; it
/// is selected by its complete id.
async fn crawl(arg: &CrawlArg, settings: &Settings, global: &Global) -> Result<(CrawlId, bool), Fail> {
    let backend = Backend::of_fleet(settings.clone(), global).await?;
    match (arg.crawl_stats(&*backend.stats).await?, arg) {
        (None, CrawlArg::Named(id)) => Ok((id.clone(), false)),
        _ => Ok((backend.crawl(arg).await?.crawl, true)),
    }
}
