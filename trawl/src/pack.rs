//! `trawl pack`: converts the dedup of spiders from plain to packed.

use std::collections::BTreeSet;

use serde_json::json;
use trawl_backends::redis::{self, Link, Packing};
use trawl_cli::{Fail, Global, Outcome, Progress, count, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::names::SpiderName;

/// The command-line arguments of `trawl pack`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The spider; all of them without it
    spider: Option<SpiderName>,
    /// Print one JSON object a spider
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Packs the dedup of the given spiders. Crawls may run meanwhile. If it is interrupted, the next run
    /// carries on.
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let settings = global.load(&global.source())?;
        let redis = redis::connect(&settings.redis).await?;
        let spiders = match self.spider {
            Some(spider) => BTreeSet::from([spider]),
            None => redis::spiders(&redis).await?,
        };
        for spider in spiders {
            match pack(&redis, &spider, &global.progress()).await? {
                urls if self.json => print_json(&json!({ "spider": spider, "urls": urls })),
                0 => global.say(format_args!("spider {spider}: nothing to pack")),
                urls => global.say(format_args!("spider {spider}: {} packed", counted(urls, "URL"))),
            }
        }
        Ok(Exit::Ok)
    }
}

/// Packs the dedup of a spider. Returns the number of URLs that were not packed before.
async fn pack(redis: &Link, spider: &SpiderName, progress: &Progress) -> Result<u64, Fail> {
    let mut packing = Packing::new(redis.clone(), spider);
    let urls = packing.left().await?;
    let mut left = urls;
    while left > 0 {
        progress.show(format!("spider {spider}: {} of {} left to pack", count(left), counted(urls, "URL")));
        left = packing.step().await?;
    }
    progress.clear();
    Ok(urls)
}
