//! The logs of programs: in the log of their worker, and in the fleet's.

use tracing::{debug, error, info, trace, warn};
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::message::Message;
use trawl_common::handler::LogLine;
use trawl_common::logs::LogLevel;
use trawl_common::names::CrawlRef;
use trawl_common::text::printable;
use trawl_common::web::url::CanonicalUrl;

/// Maximum length of a URL that is left out, as shown in logs, in bytes.
pub(super) const MAX_SHOWN_BYTES: usize = 300;

/// Logs a warning about a program's answer for the URL or task with this key.
pub(super) fn log_warning(writer: &LogWriter, crawl: &CrawlRef, key: &str, message: String) {
    log(writer, crawl, key, vec![LogLine { message, level: LogLevel::Warn }]);
}

/// Logs a program's messages about the URL or task with this key.
pub(crate) fn log(writer: &LogWriter, crawl: &CrawlRef, key: &str, lines: Vec<LogLine>) {
    for LogLine { message, level } in lines {
        log_here(crawl, key, level, &message);
        writer.write(writer.entry(level, message).in_crawl(crawl).about(key));
    }
}

fn log_here(crawl: &CrawlRef, key: &str, level: LogLevel, said: &str) {
    let (crawl, spider) = (&crawl.id, &crawl.spider);
    match level {
        LogLevel::Fatal | LogLevel::Panic | LogLevel::Error => {
            error!(%crawl, %spider, of = key, said, "handler")
        }
        LogLevel::Warn => warn!(%crawl, %spider, of = key, said, "handler"),
        LogLevel::Info => info!(%crawl, %spider, of = key, said, "handler"),
        LogLevel::Debug => debug!(%crawl, %spider, of = key, said, "handler"),
        LogLevel::Trace => trace!(%crawl, %spider, of = key, said, "handler"),
    }
}

/// Says in the log of a page or a task that requests are left out which its program asks for. A link that is left out is not worth it:
/// programs name whatever a page has.
pub(crate) fn say_refused(writer: &LogWriter, message: &Message, refused: &[CanonicalUrl]) {
    let Some(first) = refused.first() else { return };
    let first = printable(first.as_str(), MAX_SHOWN_BYTES);
    let said = format!(
        "requests left out: {}, as that for {first}: `allowed_domains`, `[follow]` or `urls.max_length` of the spider does not allow them",
        refused.len()
    );
    log_warning(writer, &message.crawl, message.work.as_str(), said);
}
