//! The history: what is kept for good of crawls, jobs, pages and the log.

use async_trait::async_trait;

use super::Result;
use crate::frontier::crawl::CrawlStats;
use crate::history::PageEnd;
use crate::jobs::Job;
use crate::logs::LogEntry;

/// Keeps what engines forget. Every call is durable when it returns. On an error any part may have been kept; repeating the call
/// changes nothing more. What is kept already is replaced, unless that is from later.
#[async_trait]
pub trait History: Send + Sync {
    /// What people call it, in health and status, without a password.
    fn name(&self) -> &str;

    /// Keeps how pages ended; of a page that ends again in the same crawl, as after a replay, its last end.
    async fn keep_pages(&self, pages: &[PageEnd]) -> Result<()>;

    /// Keeps how a crawl stands now.
    async fn keep_crawl(&self, crawl: &CrawlStats) -> Result<()>;

    /// Keeps jobs as they stand now.
    async fn keep_jobs(&self, jobs: &[Job]) -> Result<()>;

    /// Keeps entries of the log. Those of a call that is repeated as it was are kept once.
    async fn keep_logs(&self, entries: &[LogEntry]) -> Result<()>;
}
