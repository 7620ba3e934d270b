//! Admission: the calls of a producer's session.

use std::time::Duration;

use async_trait::async_trait;
use trawl_common::frontier::judging::Judging;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{NewWork, Result, SourcesRead, Terms};
use trawl_common::spider::SpiderText;

/// Opens crawls and admits the URLs of their sources. Called by producers, each under a lease (`session.rs`).
#[async_trait]
pub trait Admission: Send + Sync {
    /// Opens `crawl`, or continues it, and takes a discovery lease for `ttl`, beside those of others who read sources
    /// for the same crawl. Whether it recrawls is determined by the first opening, its limits by each one. A `holder`
    /// that opens again has one lease, the last. A crawl that was open before and that the store has forgotten does not
    /// end until all messages that may still be in transit to a worker have arrived.
    ///
    /// Fails with `Busy` while another holder has a lease for another crawl of the spider, and with `Stale` if the
    /// crawl is over.
    async fn open(
        &self,
        crawl: &CrawlRef,
        terms: Terms,
        holder: &str,
        ttl: Duration,
        past: Past,
    ) -> Result<Lease>;

    /// Extends the lease to `ttl` from now; fails with `Stale` if it has lapsed. A `ttl` of zero releases it, if it is
    /// still held, and leaves discovery open, for another run to continue.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<()>;

    /// Admits the URLs that the spider has not seen: marks them seen and writes their records. Returns, in order, which
    /// were new. They are in the outbox until [`Outbox::confirm`](super::Outbox::confirm).
    ///
    /// Fails with `Stale` if the lease is no longer held or the crawl is over.
    async fn admit(&self, lease: &Lease, urls: &[NewWork]) -> Result<Vec<bool>>;

    /// Returns the store's present run. Another one may have lost the latest writes of its predecessor.
    async fn run(&self, crawl: &CrawlRef) -> Result<Run>;

    /// Releases the lease, with the result of reading the sources under it; `None` if none were to be read. With the
    /// last lease, discovery ends; if no record is left then, the crawl is finished.
    async fn close(&self, lease: Lease, read: Option<SourcesRead>) -> Result<()>;

    /// Keeps the text of the spider's file for a crawl ([`spider_text`](trawl_common::ports::SpiderTexts::spider_text)). A
    /// text that was kept before stays.
    async fn keep_spider_text(&self, crawl: &CrawlRef, text: &SpiderText) -> Result<()>;

    /// Keeps how the result of a crawl is judged ([`CrawlStats::judging`](trawl_common::frontier::crawl::CrawlStats)),
    /// in place of what was kept before.
    async fn keep_judging(&self, crawl: &CrawlRef, judging: &Judging) -> Result<()>;
}

/// The right to admit URLs to a crawl, until its lease lapses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The token that proves the lease.
    pub token: u64,
    /// The terms that the crawl was opened with.
    pub terms: Terms,
}

/// A run of a store, from its start to its end, by a text that no other run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run(pub String);

/// Whether a crawl that the store does not know was ever open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// It was not: its id was just created.
    None,
    /// It may have been.
    Possible,
    /// It was: the caller had it open, and lost its lease.
    Certain,
}
