//! The dead letters that a command applies to.

use std::collections::HashSet;
use std::time::Duration;

use trawl_cli::{CrawlArg, Fail};
use trawl_common::dead_letters::{self, Failed};
use trawl_common::duration;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::outcome::Reason;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::web::url::Fingerprint;

use crate::backend::Backend;

/// A filter that matches the dead letters that satisfy all of its conditions.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Filter {
    /// Only these: URLs, or keys of tasks
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
    /// Whether every dead letter matches.
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

    /// Returns the crawls whose dead letters are included.
    async fn crawls(&self, backend: &Backend) -> Result<Vec<CrawlRef>, Fail> {
        let mut crawls = match &self.crawl {
            Some(arg) => vec![backend.crawl(arg).await?],
            None => backend.stats.crawls().await?,
        };
        crawls.retain(|stats| self.spider.as_ref().is_none_or(|spider| *spider == stats.spider));
        Ok(crawls.iter().map(CrawlStats::crawl_ref).collect())
    }

    /// The conditions other than the crawl.
    fn dead_letters(&self) -> dead_letters::Filter {
        dead_letters::Filter {
            urls: self.urls.clone(),
            reason: self.reason,
            host: self.host.clone(),
            older_than: self.older_than,
        }
    }
}

/// The dead letters that match a filter, page by page, crawl by crawl.
pub(crate) struct Walk<'a> {
    backend: &'a Backend,
    filter: dead_letters::Filter,
    crawls: Vec<CrawlRef>,
    cursor: u64,
    left: u64,
    /// The dead letters of the current crawl returned so far: a page may bring a URL again.
    known: HashSet<Fingerprint>,
}

impl<'a> Walk<'a> {
    pub(crate) async fn new(backend: &'a Backend, filter: &Filter) -> Result<Self, Fail> {
        let crawls = filter.crawls(backend).await?;
        let (filter, left) = (filter.dead_letters(), filter.limit.unwrap_or(u64::MAX));
        Ok(Self { backend, filter, crawls, cursor: 0, left, known: HashSet::new() })
    }

    /// Returns the next page, all of one crawl, which may be empty; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(CrawlRef, Vec<Failed>)>, Fail> {
        let Some(crawl) = self.crawls.last().filter(|_| self.left > 0).cloned() else { return Ok(None) };
        let page = dead_letters::page(&*self.backend.control, &crawl, self.cursor, &self.filter).await?;
        let mut found = Vec::new();
        for failed in page.dead_letters {
            let fingerprint = Fingerprint::from_text(&format!("{} {}", failed.note.cause.reason, failed.url));
            if self.left > 0 && self.known.insert(fingerprint) {
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
        assert_eq!(named, <Reason as strum::VariantNames>::VARIANTS);
    }
}
