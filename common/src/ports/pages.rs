//! What is remembered of pages between crawls.

use async_trait::async_trait;

use super::Result;
use crate::names::SpiderName;
use crate::url::CanonicalUrl;
use crate::visited::Visited;

/// Remembers each spider's pages, beyond the end of every crawl. Each call is idempotent, and lasts when it returns.
#[async_trait]
pub trait Pages: Send + Sync {
    /// What is remembered of each of these URLs, in order.
    async fn look(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<Vec<Option<Visited>>>;

    /// Remembers these, each in place of what was remembered of that URL.
    async fn note(&self, spider: &SpiderName, notes: &[(CanonicalUrl, Visited)]) -> Result<()>;

    /// Forgets these.
    async fn forget(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<()>;

    /// A part of all that is remembered, in no order. `cursor` is zero at first and then what the last part says; a URL
    /// may come twice, and none is left out that was there all the time.
    async fn walk(&self, spider: &SpiderName, cursor: u64) -> Result<Walk>;
}

/// A part of what a spider remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The pages; a part may be empty and not the last.
    pub pages: Vec<(CanonicalUrl, Visited)>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}
