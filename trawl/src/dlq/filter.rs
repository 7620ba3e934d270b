//! Which dead letters a command is about.

use std::collections::HashSet;
use std::time::Duration;

use trawl_cli::{CrawlArg, Fail};
use trawl_common::duration;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::outcome::Reason;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::time::UnixMs;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use super::failed::Failed;
use crate::backend::Backend;

/// Every dead letter that fits all of these.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Filter {
    /// Only these
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Only those that failed for REASON: retries, final, poison, expired, invalid, corrupt, blocked
    #[arg(long, value_name = "REASON")]
    reason: Option<Reason>,
    /// Only those of HOST
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only those of this spider
    #[arg(long, value_name = "NAME")]
    spider: Option<SpiderName>,
    /// Only those of this crawl: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlArg>,
    /// Only those that failed longer ago than AGE: 30m, 2h, 1d
    #[arg(long, value_name = "AGE", value_parser = duration::parse)]
    older_than: Option<Duration>,
    /// At most N
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

impl Filter {
    /// Whether every dead letter fits.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { urls, reason, host, spider, crawl, older_than, limit } = self;
        urls.is_empty()
            && reason.is_none()
            && host.is_none()
            && spider.is_none()
            && crawl.is_none()
            && older_than.is_none()
            && limit.is_none()
    }

    /// The crawls whose dead letters are meant.
    async fn crawls(&self, backend: &Backend) -> Result<Vec<CrawlRef>, Fail> {
        let mut crawls = match &self.crawl {
            Some(arg) => vec![backend.crawl(arg).await?],
            None => backend.stats.crawls().await?,
        };
        crawls.retain(|stats| self.spider.as_ref().is_none_or(|spider| *spider == stats.spider));
        Ok(crawls.iter().map(CrawlStats::crawl_ref).collect())
    }

    fn takes(&self, failed: &Failed, now: UnixMs) -> bool {
        let cause = &failed.note.cause;
        (self.urls.is_empty() || self.urls.iter().any(|url| is_named(url, &failed.url)))
            && self.reason.is_none_or(|reason| reason == cause.reason)
            && self.host.as_ref().is_none_or(|host| failed.host().eq_ignore_ascii_case(host))
            && self.older_than.is_none_or(|age| cause.failed_at.plus(age) <= now)
    }
}

/// Whether a person means this one: a URL in any form, or the very text.
pub(super) fn is_named(wanted: &str, url: &str) -> bool {
    wanted == url || wanted.parse::<CanonicalUrl>().is_ok_and(|wanted| wanted.as_str() == url)
}

/// What fits a filter, a page at a time, crawl by crawl.
pub(crate) struct Walk<'a> {
    backend: &'a Backend,
    filter: &'a Filter,
    crawls: Vec<CrawlRef>,
    cursor: u64,
    left: u64,
    /// What the crawl has yielded: a page may bring a URL again.
    known: HashSet<Fingerprint>,
}

impl<'a> Walk<'a> {
    pub(crate) async fn new(backend: &'a Backend, filter: &'a Filter) -> Result<Self, Fail> {
        let crawls = filter.crawls(backend).await?;
        let left = filter.limit.unwrap_or(u64::MAX);
        Ok(Self { backend, filter, crawls, cursor: 0, left, known: HashSet::new() })
    }

    /// The next page, all of one crawl, which may be empty; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(CrawlRef, Vec<Failed>)>, Fail> {
        let Some(crawl) = self.crawls.last().filter(|_| self.left > 0).cloned() else { return Ok(None) };
        let page = self.backend.control.failed(&crawl, self.cursor).await?;
        let now = UnixMs::now();
        let mut found = Vec::new();
        let mut entries: Vec<_> = page.urls.into_iter().map(|(url, note)| (url.to_string(), note)).collect();
        if page.next.is_none() {
            entries.extend(self.backend.control.invalid(&crawl).await?);
        }
        for (url, note) in entries {
            let fingerprint = Fingerprint::of(&format!("{} {url}", note.cause.reason));
            let failed = Failed { crawl: crawl.clone(), url, note };
            if self.left > 0 && self.filter.takes(&failed, now) && self.known.insert(fingerprint) {
                self.left -= 1;
                found.push(failed);
            }
        }
        self.cursor = page.next.unwrap_or_default();
        if page.next.is_none() {
            self.crawls.pop();
            self.known.clear();
        }
        Ok(Some((crawl, found)))
    }
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    #[test]
    fn the_help_names_every_reason() {
        let command = Filter::augment_args(clap::Command::new("list"));
        let reason = command.get_arguments().find(|argument| argument.get_id() == "reason");
        let help = reason.and_then(clap::Arg::get_help).map(ToString::to_string).unwrap_or_default();
        let named: Vec<_> =
            help.split_once(": ").into_iter().flat_map(|(_, words)| words.split(", ")).collect();
        assert_eq!(named, Reason::ALL.map(Reason::as_str));
    }
}
