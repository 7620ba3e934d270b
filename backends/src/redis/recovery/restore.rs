//! Creates crawls that the store does not know, new or forgotten ones.

use std::collections::{BTreeSet, HashMap};

use serde_json::json;
use tokio::sync::MutexGuard;
use tracing::{debug, info, warn};
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Error, ErrorKind, Result, Terms};
use trawl_common::time::UnixMs;
use trawl_engine::Past;

use crate::control_log::{Logged, LoggedCrawl, Record, Sources};
use crate::redis::RedisRecords;
use crate::redis::crawls::standings::Standing;
use crate::redis::keys::{self, CrawlKeys};
use crate::redis::recovery::broker_backup::BrokerBackup;
use crate::redis::script_calls::{limits, optional};

/// The field of [`keys::WATERMARKS`] that says whether the log was applied: 1 while it is being read, more afterwards.
/// A log format with additional content has a field of its own, because older programs have skipped that content.
const LOG: &str = "log";

/// The field of [`keys::WATERMARKS`] with the runs of the servers in which the log was applied: other servers may have
/// lost the last orders.
const LOG_RUN: &str = "log:run";

/// Whether messages of a crawl may be in transit although the store does not know the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnderWay {
    Nothing,
    Perhaps,
}

impl RedisRecords {
    /// Writes an order to the log.
    pub(crate) async fn log(&self, record: impl FnOnce() -> Record) -> Result<()> {
        match &self.backup {
            Some(backup) => backup.log.orders.append([record()]).await,
            None => Ok(()),
        }
    }

    /// From now on, only signed entries of the log count, if the fleet has a key.
    pub(crate) async fn seal_log(&self) {
        if let Some(backup) = &self.backup {
            backup.log.seal().await;
        }
    }

    /// Creates an unknown crawl, to be opened next with these terms, which are in the log when this returns.
    pub(crate) async fn create(&self, crawl: &CrawlRef, terms: Terms, past: Past) -> Result<()> {
        let logged = match past {
            Past::None => None,
            Past::Possible | Past::Certain => {
                let _turn = self.turn().await;
                self.apply_log(Some(crawl)).await?.crawls.remove(crawl)
            }
        };
        if let Some(LoggedCrawl { terms: before, .. }) = logged {
            let terms = Terms { recrawl: before.recrawl, replays: before.replays, ..terms };
            return if terms == before { Ok(()) } else { self.log(|| Record::opened(crawl, terms)).await };
        }
        self.log(|| Record::opened(crawl, terms)).await?;
        let under_way = if past == Past::Certain { UnderWay::Perhaps } else { UnderWay::Nothing };
        self.make(crawl, LoggedCrawl::running(terms), "open", under_way).await?;
        Ok(())
    }

    /// Logs how reading a crawl's sources ended, once its discovery has ended: no message tells a store that forgets
    /// it.
    pub(crate) async fn log_discovery(&self, crawl: &CrawlRef) -> Result<()> {
        if self.backup.is_none() {
            return Ok(());
        }
        let Some(stats) = self.read_stats(crawl).await? else { return Ok(()) };
        // Whoever opened the crawl last has set them.
        let terms = self.read_terms(crawl).await?;
        self.log(|| Record::discovered(crawl, terms, sources(&stats))).await
    }

    /// Like [`log_discovery`](Self::log_discovery). A failure is logged: without an entry, a store that forgets the
    /// crawl takes it for incomplete.
    pub(crate) async fn try_log_discovery(&self, crawl: &CrawlRef) {
        if let Err(error) = self.log_discovery(crawl).await {
            debug!(crawl = %crawl.id, %error, "the end of a crawl's discovery is not in the stream control");
        }
    }

    /// Creates an unknown crawl that a message or a worker refers to: as it is in the log, or else as a running crawl
    /// without limits.
    pub(crate) async fn restore_crawl(&self, crawl: &CrawlRef) -> Result<()> {
        let _turn = self.turn().await;
        // The first caller has created it for those who waited.
        if self.is_known(crawl).await? {
            return Ok(());
        }
        if self.apply_log(Some(crawl)).await?.crawls.contains_key(crawl) {
            return Ok(());
        }
        let under_way = if crawl.is_adhoc() { UnderWay::Nothing } else { UnderWay::Perhaps };
        let unknown = LoggedCrawl::running(Terms::default());
        if self.make(crawl, unknown, "unknown", under_way).await? && !crawl.is_adhoc() {
            warn!(crawl = %crawl.id, "a crawl that neither the store nor the log knows goes on without limits");
        }
        Ok(())
    }

    /// Applies the log, if this store never did because it is new or was emptied, or if it may have lost its last
    /// second. Work on a crawl triggers this too, but a crawl whose last URL had ended, or that was paused, has no work
    /// left. `known` has the fields of [`keys::WATERMARKS`].
    pub(crate) async fn apply_log_once(&self, known: &HashMap<String, String>) -> Result<()> {
        if self.backup.is_none() {
            return Ok(());
        }
        // Read first: if another server takes over after this point, the log is applied again.
        let runs = self.redis.runs().await?;
        let is_past = |count: &String| count.parse::<u64>().is_ok_and(|count| count > 1);
        if known.get(LOG).is_some_and(is_past) && known.get(LOG_RUN) == Some(&runs) {
            return Ok(());
        }
        let () = self.write(redis::cmd("HSET").arg(keys::WATERMARKS).arg(LOG).arg(1)).await?;
        let _turn = self.turn().await;
        self.apply_log(None).await?;
        // In a store that was emptied meanwhile the result is 1, and the log is applied again.
        let () = self.write(redis::cmd("HINCRBY").arg(keys::WATERMARKS).arg(LOG).arg(1)).await?;
        self.write(redis::cmd("HSET").arg(keys::WATERMARKS).arg(LOG_RUN).arg(runs)).await
    }

    /// Logs the crawls and blocked hosts of the store that the log lacks, because RabbitMQ may have been emptied.
    /// Entries that both have are left as they are.
    pub(crate) async fn complete_log(&self, crawls: &[Standing]) -> Result<()> {
        let Some(BrokerBackup { log, hosts, .. }) = &self.backup else {
            return Ok(());
        };
        if log.orders.is_complete().await {
            return Ok(());
        }
        let witness = log.orders.watch().await?;
        let logged = log.read().await?;
        let mut missing = Vec::new();
        for Standing { crawl, .. } in crawls {
            if !logged.crawls.contains_key(crawl) {
                missing.extend(self.records_of(crawl).await?);
            }
        }
        let blocked = hosts.blocked_in_store().await?;
        let unknown = blocked.iter().filter(|(host, _)| !logged.has_blocked(host));
        missing.extend(unknown.map(|(host, order)| Record::host(host, *order)));
        if !missing.is_empty() {
            info!(
                records = missing.len(),
                "rabbitmq had lost what was ordered of crawls and hosts: it is restored"
            );
        }
        log.orders.complete(witness, &missing).await
    }

    /// Returns the log records that describe a crawl as it is now. There are none for a permanent crawl that is
    /// running.
    async fn records_of(&self, crawl: &CrawlRef) -> Result<Vec<Record>> {
        let Some(stats) = self.read_stats(crawl).await? else { return Ok(Vec::new()) };
        let terms = self.read_terms(crawl).await?;
        let opened = (!crawl.is_adhoc()).then(|| Record::discovered(crawl, terms, sources(&stats)));
        let ordered = redis::cmd("HGET").arg(CrawlKeys::new(crawl).crawl).arg("ordered").to_owned();
        let ordered: Option<u64> = self.redis.query(&ordered).await?;
        let changed = (stats.status != CrawlState::Running).then(|| {
            let ordered = ordered.filter(|_| stats.status != CrawlState::Finished);
            Record::status(crawl, stats.status, ordered.map(UnixMs))
        });
        Ok(opened.into_iter().chain(changed).collect())
    }

    /// Waits for the right to read the log, which one task has at a time.
    pub(crate) async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        match &self.backup {
            Some(backup) => Some(backup.reading.lock().await),
            None => None,
        }
    }

    async fn is_known(&self, crawl: &CrawlRef) -> Result<bool> {
        self.redis.query(redis::cmd("EXISTS").arg(CrawlKeys::new(crawl).crawl)).await
    }

    /// Reads the log, and restores everything that the store has forgotten: `crawl`, the others that are not over, and
    /// orders about crawls and hosts. Returns the content of the log.
    pub(crate) async fn apply_log(&self, crawl: Option<&CrawlRef>) -> Result<Logged> {
        let logged = match &self.backup {
            Some(backup) => backup.read().await?,
            None => Logged::default(),
        };
        // Before the rest: as soon as a crawl exists, or its orders are known, its URLs are fetched.
        if let Some(backup) = &self.backup {
            for (host, last) in &logged.hosts {
                backup.hosts.carry_out_logged(host, *last).await?;
            }
        }
        for (known, state) in &logged.crawls {
            if (Some(known) == crawl || !state.status.is_over())
                && self.make(known, *state, "unknown", UnderWay::Perhaps).await?
            {
                info!(crawl = %known.id, status = %state.status, "the store had forgotten a crawl: it is restored");
            }
        }
        let known: BTreeSet<CrawlRef> = self.all_crawls().await?.into_iter().chain(crawl.cloned()).collect();
        for crawl in &known {
            let last = logged.crawls.get(crawl).copied().unwrap_or(LoggedCrawl::running(Terms::default()));
            let carried_out = self.carry_out_logged(crawl, last.status, last.ordered).await;
            self.unless_wrong_type(crawl, carried_out).await?;
        }
        Ok(logged)
    }

    /// Creates a crawl, indexed first: a crawl that is not in the index is never swept and never ends. Returns whether
    /// it was unknown.
    async fn make(
        &self,
        crawl: &CrawlRef,
        LoggedCrawl { terms, status, ordered, done, sources }: LoggedCrawl,
        discovery: &str,
        under_way: UnderWay,
    ) -> Result<bool> {
        self.index(crawl).await?;
        self.note_open(crawl).await?;
        let ask = json!({
            "spider": crawl.spider.as_str(),
            "status": status.as_str(),
            "discovery": if sources.is_some() { "ended" } else { discovery },
            "is_under_way": under_way == UnderWay::Perhaps,
            "recrawl": terms.recrawl.to_string(),
            "replays": optional(terms.replays),
            "terms": limits(terms),
            "ordered": ordered.0.to_string(),
            "done": done.to_string(),
            "sources": match sources {
                None => "-",
                Some(Sources::Read) => "read",
                Some(Sources::Unread) => "unread",
            },
        });
        let mut call = self.scripts.create.on(&CrawlKeys::new(crawl));
        call.arg(ask.to_string());
        self.redis.run(&call).await
    }

    /// Adds a crawl that this process works on to the index again, in case the index has lost it. Returns whether its
    /// id is its own: the sweep finds a crawl by its id, so one with the id of another spider's crawl would never be
    /// swept.
    pub(crate) async fn index_now_and_then(&self, crawl: &CrawlRef) -> Result<bool> {
        if self.indexed.contains_key(crawl) {
            return Ok(true);
        }
        // An unknown crawl must not be listed.
        if self.is_known(crawl).await? {
            self.index(crawl).await?;
            self.check_fields(crawl).await?;
        }
        let is_own = self.spider_of(crawl).await?.is_none_or(|spider| spider == crawl.spider.as_str());
        if is_own {
            self.indexed.insert(crawl.clone(), ());
        }
        Ok(is_own)
    }
}

/// Returns how reading the sources of a crawl ended; `None` while they are read.
fn sources(stats: &CrawlStats) -> Option<Sources> {
    stats.discovered.then_some(if stats.incomplete { Sources::Unread } else { Sources::Read })
}

/// Returns the error for a crawl that was just created and is gone.
pub(crate) fn forgotten(crawl: &CrawlRef) -> Error {
    Error::new(ErrorKind::Unavailable, format!("redis has forgotten the crawl {} just now", crawl.id))
}
