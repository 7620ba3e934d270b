//! The table `pages`: the page history of each spider.

pub(crate) mod cache;

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;
use trawl_common::names::SpiderName;
use trawl_common::ports::{LastVisits, NewWork, PageHistories, PageVisit, Result, Walk};
use trawl_common::spider::page_history::{PageAnswer, Validators, Visited};
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use crate::embedded::store::Store;
use crate::embedded::store::error;
use crate::embedded::store::fields::{Fields, sql_ms};

/// Maximum number of pages in a part of a walk.
const PART_SIZE: usize = 500;

/// The columns that [`read`] reads beside the URL.
const COLUMNS: &str = "depth, fetched_at, change, content, etag, modified, items, answer";

/// A page history in the state file.
pub(crate) struct EmbeddedPages {
    store: Arc<Store>,
}

impl EmbeddedPages {
    /// Creates the page history in this store.
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }
}

#[async_trait]
impl LastVisits for EmbeddedPages {
    async fn look(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<Vec<Option<Visited>>> {
        let (spider, urls) = (spider.clone(), urls.to_vec());
        self.store.call(move |db, _| urls.iter().map(|url| find(db, &spider, url)).collect()).await
    }
}

#[async_trait]
impl PageHistories for EmbeddedPages {
    async fn know(&self, spider: &SpiderName, found: &[(CanonicalUrl, u16)]) -> Result<()> {
        let (spider, found) = (spider.clone(), found.to_vec());
        self.store
            .call(move |db, _| found.iter().try_for_each(|(url, depth)| add(db, &spider, url, *depth)))
            .await
    }

    async fn note(&self, spider: &SpiderName, notes: &[(CanonicalUrl, Visited)]) -> Result<()> {
        let (spider, notes) = (spider.clone(), notes.to_vec());
        self.store
            .call(move |db, _| notes.iter().try_for_each(|(url, visited)| put(db, &spider, url, visited)))
            .await
    }

    async fn forget(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<()> {
        let (spider, urls) = (spider.clone(), urls.to_vec());
        self.store.call(move |db, _| urls.iter().try_for_each(|url| remove(db, &spider, url))).await
    }

    async fn walk(&self, spider: &SpiderName, cursor: u64) -> Result<Walk> {
        let spider = spider.clone();
        self.store.call(move |db, _| part(db, &spider, cursor)).await
    }
}

/// The page history that results from the end of a URL.
pub(crate) struct Remembered<'a> {
    /// The spider.
    pub(crate) spider: &'a SpiderName,
    /// The URL.
    pub(crate) url: &'a CanonicalUrl,
    /// The entry for its page.
    pub(crate) memory: &'a PageVisit,
    /// The links of the page. As long as it does not change, its links are not read again.
    pub(crate) links: Vec<&'a NewWork>,
}

/// Stores the page history that results from the ends of URLs: first links, then visits, then pages that are gone.
pub(crate) fn remember(db: &Connection, all: &[Remembered<'_>]) -> error::Result<()> {
    for Remembered { spider, links, .. } in all {
        let mut urls = links.iter().filter_map(|link| Some((link.work.url()?, link.depth)));
        urls.try_for_each(|(url, depth)| add(db, spider, url, depth))?;
    }
    for Remembered { spider, url, memory, .. } in all {
        if let PageVisit::Visited(visited) = memory {
            put(db, spider, url, visited)?;
        }
    }
    for Remembered { spider, url, memory, .. } in all {
        if let PageVisit::Gone = memory {
            remove(db, spider, url)?;
        }
    }
    Ok(())
}

fn find(db: &Connection, spider: &SpiderName, url: &CanonicalUrl) -> error::Result<Option<Visited>> {
    let mut find = db.prepare_cached(&format!(
        "SELECT url, {COLUMNS} FROM pages WHERE spider = ?1 AND url = ?2 AND fetched_at IS NOT NULL"
    ))?;
    find.query_row([spider.as_str(), url.as_str()], |row| Ok(read(row))).optional()?.transpose()
}

fn add(db: &Connection, spider: &SpiderName, url: &CanonicalUrl, depth: u16) -> error::Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO pages (spider, url, depth) VALUES (?1, ?2, ?3)")?
        .execute(params![spider.as_str(), url.as_str(), depth])?;
    Ok(())
}

/// Keeps the row of an entry that is written again, so that a walk does not meet it endlessly.
fn put(db: &Connection, spider: &SpiderName, url: &CanonicalUrl, visited: &Visited) -> error::Result<()> {
    let Visited { fetched_at, validators, content, change, depth, items, answer } = visited;
    db.prepare_cached(&format!(
        "INSERT INTO pages (spider, url, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (spider, url) DO UPDATE SET ({COLUMNS}) = (?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
    ))?
    .execute(params![
        spider.as_str(),
        url.as_str(),
        depth,
        sql_ms(*fetched_at),
        change.as_str(),
        content.0,
        validators.etag(),
        validators.last_modified(),
        items.as_ref().map(|items| json!(items).to_string()),
        answer.as_ref().map(PageAnswer::to_string)
    ])?;
    Ok(())
}

fn remove(db: &Connection, spider: &SpiderName, url: &CanonicalUrl) -> error::Result<()> {
    db.prepare_cached("DELETE FROM pages WHERE spider = ?1 AND url = ?2")?
        .execute([spider.as_str(), url.as_str()])?;
    Ok(())
}

/// Returns the entries after `cursor`, which is the last row of the previous part.
fn part(db: &Connection, spider: &SpiderName, cursor: u64) -> error::Result<Walk> {
    // The plus keeps SQLite from using the index by URL, in whose order each part would have to be sorted.
    let mut select = db.prepare_cached(
        "SELECT entry, url, depth FROM pages WHERE entry > ?1 AND +spider = ?2 ORDER BY entry LIMIT ?3",
    )?;
    let after = i64::try_from(cursor).unwrap_or(i64::MAX);
    let mut rows = select.query(params![after, spider.as_str(), PART_SIZE as i64])?;
    let mut walk = Walk::default();
    let mut last = None;
    while let Some(row) = rows.next()? {
        let fields = Fields::new(row, "page", "url");
        walk.pages.push((fields.text("url")?, fields.number("depth")?));
        last = Some(row.get::<_, i64>(0)? as u64);
    }
    walk.next = last.filter(|_| walk.pages.len() == PART_SIZE);
    Ok(walk)
}

fn read(row: &Row<'_>) -> error::Result<Visited> {
    let fields = Fields::new(row, "page", "url");
    let text = |column: &str| row.get::<_, Option<String>>(column);
    let items = |text: String| serde_json::from_str(&text).map_err(|_| fields.unreadable("items"));
    let answer = |text: String| text.parse().map_err(|_| fields.unreadable("answer"));
    Ok(Visited {
        fetched_at: fields.instant("fetched_at")?,
        depth: fields.number("depth")?,
        change: fields.text("change")?,
        content: Fingerprint(row.get("content").map_err(|_| fields.unreadable("content"))?),
        validators: Validators::new(text("etag")?.as_deref(), text("modified")?.as_deref()),
        items: text("items")?.map(items).transpose()?,
        answer: text("answer")?.map(answer).transpose()?,
    })
}
