//! What is remembered of pages between crawls.

use async_trait::async_trait;

use super::Result;
use crate::names::SpiderName;
use crate::spider::page_history::Visited;
use crate::web::url::CanonicalUrl;

/// Remembers each spider's pages, beyond the end of every crawl. Each call is idempotent, and lasts when it returns.
#[async_trait]
pub trait Pages: Send + Sync {
    /// What is remembered of visits to each of these URLs, in order.
    async fn look(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<Vec<Option<Visited>>>;

    /// Remembers that there are these pages, so many links away from the start, where nothing is remembered of them: the
    /// page that names them is not read again until it changes.
    async fn know(&self, spider: &SpiderName, found: &[(CanonicalUrl, u16)]) -> Result<()>;

    /// Remembers these visits, each in place of what was remembered of that URL.
    async fn note(&self, spider: &SpiderName, notes: &[(CanonicalUrl, Visited)]) -> Result<()>;

    /// Forgets these.
    async fn forget(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<()>;

    /// A part of all pages that are remembered, in no order. `cursor` is zero at first and then what the last part says; a
    /// URL may come twice, and none is left out that was there all the time.
    async fn walk(&self, spider: &SpiderName, cursor: u64) -> Result<Walk>;
}

/// A part of what a spider remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The pages, each with how many links it is away from the start; a part may be empty and not the last.
    pub pages: Vec<(CanonicalUrl, u16)>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}
