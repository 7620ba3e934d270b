//! Page history: what is remembered of pages between crawls.

use async_trait::async_trait;

use super::Result;
use crate::names::SpiderName;
use crate::spider::page_history::Visited;
use crate::web::url::CanonicalUrl;

/// Remembers each spider's pages, beyond the end of every crawl. Each call is idempotent, and durable when it
/// returns.
#[async_trait]
pub trait PageHistories: LastVisits {
    /// Remembers that these pages exist, each with its number of links from the start, unless something is
    /// remembered of them already: the page that links to them is not read again until it changes.
    async fn know(&self, spider: &SpiderName, found: &[(CanonicalUrl, u16)]) -> Result<()>;

    /// Remembers these visits, each in place of the previous one of its URL.
    async fn note(&self, spider: &SpiderName, notes: &[(CanonicalUrl, Visited)]) -> Result<()>;

    /// Forgets these pages.
    async fn forget(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<()>;

    /// Returns a part of all remembered pages, in no particular order. `cursor` is zero at first, then
    /// [`Walk::next`]. A URL may come twice, and none that was there all the time is left out.
    async fn walk(&self, spider: &SpiderName, cursor: u64) -> Result<Walk>;
}

/// The part of the page history that a worker reads.
#[async_trait]
pub trait LastVisits: Send + Sync {
    /// Returns what is remembered of the visits to each of these URLs, in order.
    async fn look(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<Vec<Option<Visited>>>;
}

/// A part of the pages that a spider remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The pages, each with its number of links from the start. A part may be empty without being the last.
    pub pages: Vec<(CanonicalUrl, u16)>,
    /// The cursor of the next part; `None` at the end.
    pub next: Option<u64>,
}
