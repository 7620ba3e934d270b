//! What programs log, in the log of their worker.

use tracing::{debug, error, info, trace, warn};
use trawl_common::handler::{Level, LogEntry};
use trawl_common::names::CrawlRef;

/// Logs what a program said of what is named `of`.
pub(super) fn log(crawl: &CrawlRef, of: &str, entries: &[LogEntry]) {
    let (crawl, spider) = (&crawl.id, &crawl.spider);
    for LogEntry { message, level } in entries {
        match level {
            Level::Fatal | Level::Panic | Level::Error => {
                error!(%crawl, %spider, of, said = message, "handler")
            }
            Level::Warn => warn!(%crawl, %spider, of, said = message, "handler"),
            Level::Info => info!(%crawl, %spider, of, said = message, "handler"),
            Level::Debug => debug!(%crawl, %spider, of, said = message, "handler"),
            Level::Trace => trace!(%crawl, %spider, of, said = message, "handler"),
        }
    }
}
