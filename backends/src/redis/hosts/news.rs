//! Events of hosts that are to be announced.
//!
//! A script stores an event in the host's own schedule, together with its change, as a field `news:<kind>:<when>`.
//! The key `hosts:news` lists hosts that may have such fields; on a cluster it lives in another slot, so a host is
//! listed before its script runs. The sweeper reads the listed schedules, has their events announced, and then
//! removes the fields. A host that was listed for [`LISTED_TTL`] and has no event is removed from the list.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use tracing::error;
use trawl_common::events::{HostEvent, HostNews, Refusal};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{ErrorKind, Result};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use crate::redis::hosts::RedisHosts;
use crate::redis::server::full;
use crate::redis::{failed, keys};

/// The prefix of the fields.
const FIELD: &str = "news:";

/// Time that a host stays listed, which is longer than it takes from listing it to the script's answer.
const LISTED_TTL: Duration = Duration::from_secs(60);

/// Maximum number of hosts checked in one call, the earliest listed first.
const HOSTS: isize = 1_000;

/// Maximum number of events announced at once, however many hosts they have. The rest waits for the next time.
const MAX_EVENTS: usize = 20;

/// A noted event, with its field.
struct Noted {
    field: String,
    news: Option<HostNews>,
}

impl RedisHosts {
    /// Lists a host whose script is about to run.
    pub(crate) async fn list_for_news(&self, key: &HostKey) -> Result<()> {
        let mut add = redis::cmd("ZADD");
        add.arg(keys::HOST_NEWS).arg("GT").arg(UnixMs::now().0).arg(key.as_str());
        full::anyway(&self.redis, &add).await.map_err(failed)
    }

    /// Returns the events of hosts that are not announced yet.
    pub(crate) async fn news(&self) -> Result<Vec<HostEvent>> {
        let mut oldest = redis::cmd("ZRANGE");
        oldest.arg(keys::HOST_NEWS).arg(0).arg(HOSTS - 1).arg("WITHSCORES");
        let listed: Vec<(String, f64)> = self.redis.query(&oldest).await?;
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        let noted =
            try_join_all(listed.iter().map(|(host, _)| self.noted_of(HostKey::from_text(host)))).await?;
        let stale = UnixMs::now().0.saturating_sub(LISTED_TTL.as_millis() as u64) as f64;
        let is_stale = |at: f64, noted: &[HostNews]| at <= stale && noted.is_empty();
        let mut unlist = self.scripts.unlist.key(keys::HOST_NEWS);
        for ((host, at), _) in listed.iter().zip(&noted).filter(|((_, at), noted)| is_stale(*at, noted)) {
            unlist.arg(host).arg(format!("{at:.0}"));
        }
        let () = self.redis.run(&unlist).await?;
        let mut events = HostEvent::group(noted.into_iter().flatten().collect());
        events.truncate(MAX_EVENTS);
        Ok(events)
    }

    /// Notes that an event was announced.
    pub(crate) async fn news_announced(&self, event: &HostEvent) -> Result<()> {
        let forget = |news: &HostNews| {
            let mut forget = redis::cmd("HDEL");
            forget.arg(keys::rate_limit(&news.host)).arg(field(news));
            async move { self.redis.query::<()>(&forget).await }
        };
        try_join_all(event.news().iter().map(forget)).await.map(drop)
    }

    /// Returns the noted events of one host. Unreadable ones are logged and deleted.
    async fn noted_of(&self, host: HostKey) -> Result<Vec<HostNews>> {
        let key = keys::rate_limit(&host);
        let fields = match self.redis.query(redis::cmd("HGETALL").arg(&key)).await {
            // Others have overwritten the key. Requests to the host log that.
            Err(error) if error.kind == ErrorKind::Corrupt => BTreeMap::new(),
            fields => fields?,
        };
        let mut news = Vec::new();
        for Noted { field, news: read } in noted(&host, fields) {
            match read {
                Some(read) => news.push(read),
                None => {
                    error!(key, field, "what happened to a host cannot be read: it is not announced");
                    let () = self.redis.query(redis::cmd("HDEL").arg(&key).arg(field)).await?;
                }
            }
        }
        Ok(news)
    }
}

fn noted(host: &HostKey, fields: BTreeMap<String, String>) -> impl Iterator<Item = Noted> {
    let news = fields.into_iter().filter(|(field, _)| is_news(field));
    news.map(|(field, value)| Noted { news: read(host, &field, &value), field })
}

/// Returns whether a field of a host's schedule is an event.
pub(crate) fn is_news(field: &str) -> bool {
    field.starts_with(FIELD)
}

fn field(news: &HostNews) -> String {
    format!("{FIELD}{}:{}", news.kind, news.at.0)
}

/// Parses a field `news:<kind>:<ms>` that is empty, or has `<until, ms> <status>` and perhaps ` <crawl> <spider>`.
fn read(host: &HostKey, field: &str, value: &str) -> Option<HostNews> {
    let (kind, at) = field.strip_prefix(FIELD)?.split_once(':')?;
    let (refusal, crawl) = match value.split(' ').collect::<Vec<_>>()[..] {
        [""] => (None, None),
        [until, status] => (Some((until, status)), None),
        [until, status, id, spider] => (Some((until, status)), Some((id, spider))),
        _ => return None,
    };
    let refusal = match refusal {
        Some((until, status)) => {
            Some(Refusal { until: UnixMs(until.parse().ok()?), status: status.parse().ok()? })
        }
        None => None,
    };
    let crawl = match crawl {
        Some((id, spider)) => Some(CrawlRef { id: id.parse().ok()?, spider: spider.parse().ok()? }),
        None => None,
    };
    let (kind, at) = (kind.parse().ok()?, UnixMs(at.parse().ok()?));
    Some(HostNews { at, host: host.clone(), kind, crawl, refusal })
}
