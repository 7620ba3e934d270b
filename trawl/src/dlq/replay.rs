//! `trawl dlq replay` and `trawl dlq purge`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use trawl_cli::{Fail, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::health::Health;
use trawl_common::names::{CrawlId, CrawlRef};
use trawl_common::ports::{Engine, Opening, Session, Terms};
use trawl_common::web::url::CanonicalUrl;

use super::confirm::confirm;
use super::failed::{Failed, dead_letters};
use super::filter::{Filter, Walk};
use crate::backend::Backend;

/// Which, and whether to ask.
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

/// How long a replay that dies keeps its crawl open.
const LEASE: Duration = Duration::from_secs(60);

impl Args {
    /// Each page of URLs leaves the list and becomes pending in one step, so that it can be stopped at any point.
    pub(super) async fn replay(self, backend: &Backend) -> Outcome {
        confirm("send again", &self.filter, self.yes)?;
        let engine = backend.engine().await?;
        let mut walk = Walk::new(backend, &self.filter).await?;
        let mut target: Option<Target> = None;
        let (mut sent, mut crawls) = (0, BTreeSet::new());
        while let Some((crawl, page)) = walk.next().await? {
            if target.as_ref().is_none_or(|target| target.from != crawl) {
                close(target.take()).await?;
            }
            if page.is_empty() {
                continue;
            }
            let into = match target.take() {
                Some(target) => target,
                None => Target::of(backend, &*engine, crawl).await?,
            };
            let urls: Vec<CanonicalUrl> = page.iter().filter_map(Failed::canonical).collect();
            sent += engine.replay(&into.from, &into.into, &urls).await?;
            crawls.insert(into.into.id.clone());
            target = Some(into);
        }
        close(target).await?;
        let then = if backend.is_fleet() { "" } else { "; `trawl crawl` with this state file fetches them" };
        backend.say(format_args!("{} sent again{then}", dead_letters(sent)));
        if self.json {
            print_json(&json!({ "sent": sent, "crawls": crawls }));
        }
        Ok(Exit::Ok)
    }

    pub(super) async fn purge(self, backend: &Backend) -> Outcome {
        confirm("take out of the list", &self.filter, self.yes)?;
        let mut walk = Walk::new(backend, &self.filter).await?;
        let mut purged = 0;
        while let Some((crawl, page)) = walk.next().await? {
            let urls: Vec<CanonicalUrl> = page.iter().filter_map(Failed::canonical).collect();
            let invalid = page.into_iter().filter(|failed| failed.canonical().is_none());
            let texts: Vec<String> = invalid.map(|failed| failed.url).collect();
            if !urls.is_empty() {
                purged += backend.control.purge(&crawl, &urls).await?;
            }
            if !texts.is_empty() {
                purged += backend.control.purge_invalid(&crawl, &texts).await?;
            }
        }
        backend.say(format_args!("{} purged", dead_letters(purged)));
        if self.json {
            print_json(&json!({ "purged": purged }));
        }
        Ok(Exit::Ok)
    }
}

/// Where the URLs of a crawl go: into itself, or, if it is over, into a successor that is open for as long.
struct Target {
    from: CrawlRef,
    into: CrawlRef,
    session: Option<Box<dyn Session>>,
}

impl Target {
    async fn of(backend: &Backend, engine: &dyn Engine, from: CrawlRef) -> Result<Self, Fail> {
        let stats = backend.crawl_stats(&from.id).await?;
        if !stats.status.is_over() {
            return Ok(Self { into: from.clone(), from, session: None });
        }
        let into = successor(backend, &stats).await?;
        backend
            .say(format_args!("crawl {} is {}: its URLs go into crawl {}", from.id, stats.status, into.id));
        let Terms { file, .. } = backend.stats.terms(&from).await?;
        let terms = Terms { file, ..Terms::default() };
        let opening = Opening { crawl: into.clone(), terms, is_new: false, lease: LEASE };
        let session = engine.open(opening, impatient()).await?;
        Ok(Self { from, into, session: Some(session) })
    }
}

/// Of a command that says at once what fails.
fn impatient() -> Arc<Health> {
    let stop = CancellationToken::new();
    stop.cancel();
    Arc::new(Health::until(stop))
}

/// The first of `<crawl>.r1`, `.r2` and on that is not over.
async fn successor(backend: &Backend, stats: &CrawlStats) -> Result<CrawlRef, Fail> {
    for number in 1.. {
        let id: CrawlId = format!("{}.r{number}", stats.crawl).parse().map_err(Fail::usage)?;
        if backend.stats.crawl_stats(&id).await?.is_none_or(|stats| !stats.status.is_over()) {
            return Ok(CrawlRef { id, spider: stats.spider.clone() });
        }
    }
    unreachable!("numbers do not end")
}

async fn close(target: Option<Target>) -> Result<(), Fail> {
    if let Some(session) = target.and_then(|target| target.session) {
        session.close().await?;
    }
    Ok(())
}
