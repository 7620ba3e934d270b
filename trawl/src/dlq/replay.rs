//! `trawl dlq replay` and `trawl dlq purge`.

use std::collections::BTreeSet;

use serde_json::json;
use trawl_cli::{Fail, Outcome, print_json};
use trawl_common::dead_letters::{Replay, purge};
use trawl_common::exit::Exit;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Engine;

use super::dead_letters;
use super::filter::{Filter, Walk};
use crate::backend::Backend;
use crate::confirm::confirm;

/// The command-line arguments of `trawl dlq replay` and `trawl dlq purge`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Don't ask before every dead letter there is
    #[arg(short, long)]
    yes: bool,
    /// Print how many there were as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Sends dead letters again. Each page of URLs leaves the list and becomes pending in one step, so the
    /// command can be interrupted at any point.
    pub(super) async fn replay(self, backend: &Backend) -> Outcome {
        confirm("send again every dead letter there is?", self.yes || !self.filter.is_empty())?;
        let engine = backend.engine().await?;
        let mut walk = Walk::new(backend, &self.filter).await?;
        let mut replay: Option<Replay<'_>> = None;
        let (mut sent, mut crawls) = (0, BTreeSet::new());
        while let Some((crawl, page)) = walk.next().await? {
            if replay.as_ref().is_none_or(|replay| *replay.source() != crawl) {
                close(backend, replay.take()).await?;
            }
            if page.is_empty() {
                continue;
            }
            let of_crawl = match replay.take() {
                Some(replay) => replay,
                None => begin(backend, &*engine, &crawl).await?,
            };
            sent += of_crawl.send(&page).await?;
            crawls.insert(of_crawl.target().id.clone());
            replay = Some(of_crawl);
        }
        close(backend, replay).await?;
        let then = if backend.is_fleet() { "" } else { "; `trawl crawl` with this state file fetches them" };
        backend.say(format_args!("{} sent again{then}", dead_letters(sent)));
        if self.json {
            print_json(&json!({ "sent": sent, "crawls": crawls }));
        }
        Ok(Exit::Ok)
    }

    pub(super) async fn purge(self, backend: &Backend) -> Outcome {
        confirm("take every dead letter there is out of the list?", self.yes || !self.filter.is_empty())?;
        let mut walk = Walk::new(backend, &self.filter).await?;
        let mut purged = 0;
        while let Some((crawl, page)) = walk.next().await? {
            purged += purge(&*backend.control, &crawl, &page).await?;
        }
        backend.say(format_args!("{} purged", dead_letters(purged)));
        if self.json {
            print_json(&json!({ "purged": purged }));
        }
        Ok(Exit::Ok)
    }
}

async fn begin<'a>(backend: &Backend, engine: &'a dyn Engine, crawl: &CrawlRef) -> Result<Replay<'a>, Fail> {
    let crawl = backend.crawl_stats(&crawl.id).await?;
    let replay = Replay::new(&crawl, engine, &*backend.stats).await?;
    if replay.target() != replay.source() {
        let (id, into) = (&crawl.crawl, &replay.target().id);
        backend.say(format_args!("crawl {id} is {}: its URLs go into crawl {into}", crawl.status));
    }
    Ok(replay)
}

async fn close(backend: &Backend, replay: Option<Replay<'_>>) -> Result<(), Fail> {
    match replay {
        Some(replay) => Ok(replay.close(&*backend.control).await?),
        None => Ok(()),
    }
}
