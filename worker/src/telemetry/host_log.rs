//! Logs each back-off of a host once, however many of its URLs in flight meet it.

use moka::sync::Cache;
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::outcome::Failure;
use trawl_common::logs::LogLevel;
use trawl_common::names::CrawlRef;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

/// Maximum number of hosts to track.
const HOSTS: u64 = 10_000;

/// Logs hosts in a back-off.
pub(crate) struct HostLog {
    log: LogWriter,
    /// The end of each host's back-off, as logged last.
    said: Cache<HostKey, UnixMs>,
}

impl HostLog {
    pub(crate) fn new(log: LogWriter) -> Self {
        Self { log, said: Cache::new(HOSTS) }
    }

    /// Logs that a host is in a back-off until `until`, because of this response. `crawl` is the crawl that
    /// sent the request, if there was one.
    pub(crate) fn log_backoff(
        &self,
        host: &HostKey,
        until: UnixMs,
        failure: &Failure,
        crawl: Option<&CrawlRef>,
    ) {
        let is_said = self.said.get(host).is_some_and(|said| said > UnixMs::now());
        if is_said || !self.log.is_on() {
            return;
        }
        self.said.insert(host.clone(), until);
        let text = format!("the host is left alone until {until}: {}", failure.detail);
        let entry = self.log.entry(LogLevel::Warn, text).with_host(host.as_str());
        let entry = entry.of_class(failure.class.as_str());
        self.log.write(match crawl {
            Some(crawl) => entry.in_crawl(crawl),
            None => entry,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use trawl_common::frontier::outcome::Class;
    use trawl_common::web::url::CanonicalUrl;

    use super::*;
    use crate::tests::log::OwnLog;

    #[tokio::test]
    async fn a_host_that_wants_to_be_left_alone_is_named_once_however_many_of_its_urls_find_out() {
        let log = OwnLog::new();
        let hosts = HostLog::new(log.writer.clone());
        let host = |url: &str| HostKey::host(&url.parse::<CanonicalUrl>().unwrap().host());
        let (one, other) = (host("http://a.example/"), host("http://b.example/"));
        let refused = Failure { status: Some(429), ..Failure::new(Class::Http, "429 Too Many Requests") };
        let until = UnixMs::now().plus(Duration::from_secs(60));
        for host in [&one, &one, &other, &one] {
            hosts.log_backoff(host, until, &refused, Some(&CrawlRef::adhoc()));
        }
        let said = log.entries().await;
        let named: Vec<_> = said.iter().map(|entry| entry.host.as_deref().unwrap()).collect();
        assert_eq!(named, ["a.example", "b.example"]);
        let text = format!("the host is left alone until {until}: 429 Too Many Requests");
        assert_eq!((said[0].message.as_str(), said[0].level), (&*text, LogLevel::Warn));
    }
}
