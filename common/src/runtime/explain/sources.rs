//! The sources of a crawl that were not read to their end, by the log.

use crate::fleet_log::newest;
use crate::logs::{LogEntry, LogFilter, LogLevel};
use crate::names::{CrawlId, CrawlRef, WorkerId};
use crate::ports::{LogPlace, Logs, Result};

/// The beginning of their entries.
const UNREAD: &str = "source not read to its end: ";

/// Maximum number of sources that are written to the log.
const MAX_LOGGED: usize = 100;

/// Maximum number of entries of the crawl that are looked at.
const MAX_EXAMINED: usize = 1_000;

/// Writes to the log which sources of a crawl were not read to their end, each with the reason.
pub async fn write_unread(
    logs: &dyn Logs,
    reader: &WorkerId,
    crawl: &CrawlRef,
    problems: &[String],
) -> Result<()> {
    let entry =
        |problem| LogEntry::new(reader, LogLevel::Error, format!("{UNREAD}{problem}")).in_crawl(crawl);
    let entries: Vec<LogEntry> = problems.iter().take(MAX_LOGGED).map(entry).collect();
    if entries.is_empty() { Ok(()) } else { logs.append(&entries).await }
}

/// Returns the last of these entries, as far as the log has them still: `source not read to its end: ...`.
pub async fn unread(logs: &dyn Logs, crawl: &CrawlId, most: usize) -> Result<Vec<String>> {
    let filter =
        LogFilter { crawl: Some(crawl.clone()), level: Some(LogLevel::Error), ..LogFilter::default() };
    let found = newest(logs, &filter, LogPlace::END, MAX_EXAMINED).await?;
    let mut words: Vec<String> = found.lines.into_iter().map(|line| line.entry.message.to_string()).collect();
    words.retain(|message| message.starts_with(UNREAD));
    words.dedup();
    words.truncate(most);
    Ok(words)
}
