//! The logs of programs: in the log of their worker, and in the fleet's.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use parking_lot::Mutex;
use tracing::{debug, error, info, trace, warn};
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::message::Message;
use trawl_common::handler::LogLine;
use trawl_common::logs::LogLevel;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::text::printable;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

/// Maximum length of a URL that is left out, as shown in logs, in bytes.
pub(super) const MAX_SHOWN_BYTES: usize = 300;

/// Logs a warning about a program's answer for the URL or task with this key.
pub(super) fn log_warning(writer: &LogWriter, crawl: &CrawlRef, key: &str, message: String) {
    log(writer, crawl, key, vec![LogLine { message, level: LogLevel::Warn }]);
}

/// Logs a program's messages about the URL or task with this key.
pub(crate) fn log(writer: &LogWriter, crawl: &CrawlRef, key: &str, lines: Vec<LogLine>) {
    for LogLine { message, level } in lines {
        log_here(crawl, key, level, &TOLD.shown(&crawl.spider, &message));
        writer.write(writer.entry(level, message).in_crawl(crawl).about(key));
    }
}

/// Maximum number of texts that are remembered; then all are forgotten.
const MAX_REMEMBERED: usize = 1_000;

/// The texts of this process's log.
static TOLD: LazyLock<Told> = LazyLock::new(Told::default);

/// The texts of several lines that were logged, by spider: one mistake in a program writes the same trace for every
/// page.
#[derive(Default)]
struct Told(Mutex<HashSet<Fingerprint>>);

impl Told {
    /// Returns what is logged of a text: all of it the first time, then its last line. The fleet's log has all of it
    /// each time.
    fn shown<'a>(&self, spider: &SpiderName, text: &'a str) -> Cow<'a, str> {
        let Some((before, last)) = text.trim_end().rsplit_once('\n') else { return text.into() };
        let mut told = self.0.lock();
        if told.len() >= MAX_REMEMBERED {
            told.clear();
        }
        if told.insert(Fingerprint::from_text(&format!("{spider} {text}"))) {
            return text.into();
        }
        let lines = before.lines().count();
        format!("{} (after {lines} lines as before: `trawl logs`)", last.trim()).into()
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

/// Says in the log of a page or a task that requests are left out which its program asks for. A link that is left out
/// is not worth it: programs name whatever a page has.
pub(crate) fn say_refused(writer: &LogWriter, message: &Message, refused: &[CanonicalUrl]) {
    let Some(first) = refused.first() else { return };
    let first = printable(first.as_str(), MAX_SHOWN_BYTES);
    let said = format!(
        "requests left out: {}, as that for {first}: `allowed_domains`, `[follow]` or `urls.max_length` of the spider does not allow them",
        refused.len()
    );
    log_warning(writer, &message.crawl, message.work.as_str(), said);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_logged_in_full_once_for_each_spider_and_then_by_its_last_line() {
        let (told, trace) = (Told::default(), "Traceback:\n  run.py, line 3\nKeyError: 'price'\n");
        let [shop, news] = ["shop", "news"].map(|name| name.parse().unwrap());
        let last = "KeyError: 'price' (after 2 lines as before: `trawl logs`)";
        assert_eq!([trace, last, last], [(); 3].map(|()| told.shown(&shop, trace)));
        assert_eq!(told.shown(&news, trace), trace);
        assert_eq!([(); 2].map(|()| told.shown(&shop, "one line")), ["one line"; 2]);
    }
}
