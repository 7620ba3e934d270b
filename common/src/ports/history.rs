//! The history: a permanent record of crawls, jobs, pages and the log.

use async_trait::async_trait;

use super::Result;
use crate::frontier::crawl::CrawlStats;
use crate::history::PageEnd;
use crate::jobs::Job;
use crate::logs::LogEntry;

/// Keeps what engines forget. Every call is durable when it returns. After an error any part may have been kept;
/// repeating the call changes nothing more. An existing entry is replaced unless it is newer.
#[async_trait]
pub trait History: Send + Sync {
    /// Returns the name that people see in health and status, without a password.
    fn name(&self) -> &str;

    /// Keeps how pages ended. If a page ends again in the same crawl, as after a replay, its last end is kept.
    async fn keep_pages(&self, pages: &[PageEnd]) -> Result<()>;

    /// Keeps the current stats of a crawl.
    async fn keep_crawl(&self, crawl: &CrawlStats) -> Result<()>;

    /// Keeps the current state of jobs.
    async fn keep_jobs(&self, jobs: &[Job]) -> Result<()>;

    /// Keeps entries of the log. An identical repeated call keeps them once.
    async fn keep_logs(&self, entries: &[LogEntry]) -> Result<()>;
}
