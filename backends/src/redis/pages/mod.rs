//! Page history: the hash `T:pages`, URL -> `depth fetched_at change content`, then on separate lines the entity
//! tag and the date of the last change, each empty if there is none, the number of items of each kind, in JSON,
//! and the answer (`status links landed`). For a page that was not visited yet there is only the depth.

pub(crate) mod budget;
pub(crate) mod cache;

use async_trait::async_trait;
use redis::AsyncCommands;
use serde_json::json;
use tracing::warn;
use trawl_common::names::SpiderName;
use trawl_common::ports::{LastVisits, PageHistories, Result, Walk};
use trawl_common::spider::item::Change;
use trawl_common::spider::page_history::{Validators, Visited};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use crate::redis::recovery::corrupt::shown;
use crate::redis::script_calls::BATCH;
use crate::redis::{Link, failed, keys};

/// Page history on Redis. An entry that cannot be read counts as missing: the page is fetched, and the entry
/// written anew.
pub struct RedisPages {
    redis: Link,
}

impl RedisPages {
    /// Creates the page history on this connection.
    pub fn new(redis: Link) -> Self {
        Self { redis }
    }
}

#[async_trait]
impl LastVisits for RedisPages {
    async fn look(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<Vec<Option<Visited>>> {
        let mut redis = self.redis.clone();
        let mut known = Vec::with_capacity(urls.len());
        for batch in urls.chunks(BATCH) {
            let mut get = redis::cmd("HMGET");
            get.arg(keys::pages(spider)).arg(names(batch));
            let stored: Vec<Option<String>> = get.query_async(&mut redis).await.map_err(failed)?;
            for (url, text) in batch.iter().zip(stored) {
                let page = text.as_deref().map(read);
                if let Some(Stored::Unreadable) = page {
                    warn!(%spider, %url, "what is remembered of a page cannot be read: it counts as new");
                }
                known.push(if let Some(Stored::Visited(visited)) = page { Some(visited) } else { None });
            }
        }
        Ok(known)
    }
}

#[async_trait]
impl PageHistories for RedisPages {
    async fn know(&self, spider: &SpiderName, found: &[(CanonicalUrl, u16)]) -> Result<()> {
        let mut redis = self.redis.clone();
        for batch in found.chunks(BATCH) {
            let mut pipeline = redis::pipe();
            for (url, depth) in batch {
                pipeline.hset_nx(keys::pages(spider), url.as_str(), depth).ignore();
            }
            let () = pipeline.query_async(&mut redis).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn note(&self, spider: &SpiderName, notes: &[(CanonicalUrl, Visited)]) -> Result<()> {
        let mut redis = self.redis.clone();
        for batch in notes.chunks(BATCH) {
            let entries: Vec<(&str, String)> =
                batch.iter().map(|(url, visited)| (url.as_str(), encode(visited))).collect();
            let () = redis.hset_multiple(keys::pages(spider), &entries).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn forget(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<()> {
        let mut redis = self.redis.clone();
        for batch in urls.chunks(BATCH) {
            let () = redis.hdel(keys::pages(spider), names(batch)).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn walk(&self, spider: &SpiderName, cursor: u64) -> Result<Walk> {
        let mut scan = redis::cmd("HSCAN");
        scan.arg(keys::pages(spider)).arg(cursor).arg("COUNT").arg(BATCH);
        let (next, entries): (u64, Vec<(Vec<u8>, Vec<u8>)>) =
            scan.query_async(&mut self.redis.clone()).await.map_err(failed)?;
        let mut pages = Vec::with_capacity(entries.len());
        for (url, stored) in entries {
            match walked(&url, &stored) {
                Some(page) => pages.push(page),
                None => {
                    let (key, url) = (keys::pages(spider), shown(&url));
                    warn!(
                        key,
                        url,
                        "what is remembered of a page cannot be read: it is fetched again only if it is found again"
                    );
                }
            }
        }
        Ok(Walk { pages, next: (next > 0).then_some(next) })
    }
}

fn names(urls: &[CanonicalUrl]) -> Vec<&str> {
    urls.iter().map(CanonicalUrl::as_str).collect()
}

fn encode(visited: &Visited) -> String {
    let Visited { fetched_at, validators, content, change, depth, items, answer } = visited;
    let (etag, date) =
        (validators.etag().unwrap_or_default(), validators.last_modified().unwrap_or_default());
    let items = items.as_ref().map(|items| format!("\n{}", json!(items))).unwrap_or_default();
    // Without a line of items there is no line after it. Only an entry of an old program has none.
    let answer = answer.as_ref().filter(|_| !items.is_empty());
    let answer = answer.map(|answer| format!("\n{answer}")).unwrap_or_default();
    format!("{depth} {} {} {content}\n{etag}\n{date}{items}{answer}", fetched_at.0, change.as_str())
}

/// Parses a page and its depth, which may be all there is.
fn walked(url: &[u8], stored: &[u8]) -> Option<(CanonicalUrl, u16)> {
    let depth = str::from_utf8(stored).ok()?.split(' ').next()?.parse().ok()?;
    Some((CanonicalUrl::recorded(str::from_utf8(url).ok()?).ok()?, depth))
}

/// A stored entry for a page.
enum Stored {
    /// Only its depth: it was found, and not visited yet.
    Found,
    Visited(Visited),
    Unreadable,
}

fn read(text: &str) -> Stored {
    match decode(text) {
        Some(visited) => Stored::Visited(visited),
        None if text.parse::<u16>().is_ok() => Stored::Found,
        None => Stored::Unreadable,
    }
}

fn decode(text: &str) -> Option<Visited> {
    let mut lines = text.split('\n');
    let (facts, etag, date) = (lines.next()?, lines.next()?, lines.next()?);
    let mut facts = facts.split(' ');
    Some(Visited {
        depth: facts.next()?.parse().ok()?,
        fetched_at: UnixMs(facts.next()?.parse().ok()?),
        change: facts.next()?.parse::<Change>().ok()?,
        content: facts.next()?.parse().ok()?,
        validators: Validators::new(Some(etag), Some(date)),
        items: lines.next().map(serde_json::from_str).transpose().ok()?,
        answer: lines.next().map(str::parse).transpose().ok()?,
    })
}
