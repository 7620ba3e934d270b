//! That a host wants to be left alone, said once for each time: all of its URLs that are under way find it out.

use moka::sync::Cache;
use trawl_common::frontier::outcome::Failure;
use trawl_common::logs::{LogLevel, LogWriter};
use trawl_common::names::CrawlRef;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

/// Of so many hosts it is remembered that it was said.
const HOSTS: u64 = 10_000;

/// Logs hosts that want to be left alone.
pub(crate) struct HostLog {
    log: LogWriter,
    /// Until when each is left alone, as was said last.
    said: Cache<HostKey, UnixMs>,
}

impl HostLog {
    pub(crate) fn new(log: LogWriter) -> Self {
        Self { log, said: Cache::new(HOSTS) }
    }

    /// A host is left alone until then, as it asked for with this answer.
    pub(crate) fn backs_off(&self, host: &HostKey, until: UnixMs, failure: &Failure, crawl: &CrawlRef) {
        let is_said = self.said.get(host).is_some_and(|said| said > UnixMs::now());
        if is_said || !self.log.is_on() {
            return;
        }
        self.said.insert(host.clone(), until);
        let text = format!("the host is left alone until {until}: {}", failure.detail);
        let entry = self.log.entry(LogLevel::Warn, text).in_crawl(crawl).with_host(host.as_str());
        self.log.write(entry.of_class(failure.class.as_str()));
    }
}
