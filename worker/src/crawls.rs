//! What a worker knows of the crawls whose URLs it takes.

use moka::sync::Cache;
use tracing::{error, warn};
use trawl_common::names::CrawlRef;
use trawl_common::ports::Terms;
use trawl_common::spider::FileHash;
use trawl_common::time::UnixMs;

use crate::Shared;
use crate::spiders::Loaded;

/// So many crawls are known at a time.
const CRAWLS: u64 = 1_000;

/// The crawls, each looked up when its first URL comes.
pub(crate) struct Crawls(Cache<CrawlRef, Crawl>);

/// What is settled of a crawl when it is opened.
#[derive(Clone, Copy)]
pub(crate) struct Crawl {
    pub(crate) terms: Terms,
    /// When it started.
    pub(crate) start: UnixMs,
}

impl Default for Crawls {
    fn default() -> Self {
        Self(Cache::new(CRAWLS))
    }
}

/// Looks a crawl up, once. What differs between its spider's file and the one of this worker is said then.
pub(crate) async fn look_up(shared: &Shared, crawl: &CrawlRef, spider: &Loaded) -> Crawl {
    if let Some(known) = shared.crawls.0.get(crawl) {
        return known;
    }
    let frontier = &shared.ports.frontier;
    let terms = shared.health.until_done("looking up a crawl", || frontier.terms(crawl)).await;
    let books = shared.health.until_done("looking up a crawl", || frontier.books(&crawl.id)).await;
    let known = Crawl { terms, start: books.map_or_else(UnixMs::now, |books| books.started) };
    match (terms.file, spider.spider.file) {
        (Some(_), None) => {
            let (crawl, spider) = (&crawl.id, &crawl.spider);
            error!(%crawl, %spider, "the crawl's spider has a file, which is not here: its URLs are left to other workers");
        }
        (Some(theirs), Some(ours)) if theirs != ours => {
            warn!(crawl = %crawl.id, spider = %crawl.spider, "the spider's file here is not the one that the crawl was opened with");
        }
        _ => {}
    }
    shared.crawls.0.insert(crawl.clone(), known);
    known
}

impl Crawl {
    /// Whether a worker may work with what it has for the crawl's spider: without the file, pages would be read by the
    /// settings alone, and their links not followed.
    pub(crate) fn can_be_worked_with(&self, file: Option<FileHash>) -> bool {
        self.terms.file.is_none() || file.is_some()
    }
}
