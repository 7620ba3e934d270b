//! Items as rows of PostgreSQL: a table for each kind of item, made from the spider, and upserts by id.

pub(crate) mod cell;
mod error;
pub(crate) mod link;
pub(crate) mod relation;
mod table;

use std::collections::BTreeMap;

use async_trait::async_trait;
use link::Link;
use serde_json::{Map, Value};
use table::Table;
use tokio::sync::Mutex;
use trawl_common::ports::{Error, ErrorKind, Page, Result, Sink};
use trawl_common::settings::{self, ServerUrl};
use trawl_common::spider::Spider;
use trawl_common::spider::item::Item;
use trawl_web::Guard;

/// Rows in one statement at most.
const ROWS: usize = 500;
/// Bytes in one statement, beyond which no further row is added.
const BYTES: usize = 8 << 20;

/// A database. It is connected to when the first page comes, and again when the connection broke.
pub struct Postgres {
    name: String,
    server: link::Server,
    tables: Vec<Table>,
    link: Mutex<Option<Link>>,
}

impl Postgres {
    /// The sink of `spider`. Without `table`, each kind of item has one of its own, named as the kind, or as the spider. A server that
    /// somebody chose who has not the machine is where pages may be by default.
    pub fn new(url: &ServerUrl, table: Option<&str>, spider: &Spider) -> Result<Self> {
        Self::with(url, table, spider, &Guard::of(settings::Fetch::default()))
    }

    /// The same, where `guard` says where such a server may be.
    pub(super) fn with(url: &ServerUrl, table: Option<&str>, spider: &Spider, guard: &Guard) -> Result<Self> {
        Ok(Self {
            name: format!("postgres {url}"),
            server: link::Server::new(url, url.is_guarded().then_some(guard))?,
            tables: table::tables(table, spider)?,
            link: Mutex::default(),
        })
    }

    async fn store(&self, link: &Link, pages: &[Page]) -> Result<()> {
        for table in &self.tables {
            let items = pages.iter().flat_map(|page| &page.items).filter(|item| table.takes(item));
            for rows in batches(table, items) {
                link.upsert(&table.relation(), &rows).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Sink for Postgres {
    fn name(&self) -> &str {
        &self.name
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        if let Some(item) = self.stranger(pages) {
            let kind = item.item.as_deref().unwrap_or("without a name");
            let text = format!("{}: no table for items {kind:?}: the spider has changed", self.name);
            return Err(Error::new(ErrorKind::Refused, text));
        }
        let mut place = self.link.lock().await;
        // Taken out for the time of the call: if it fails or is given up, nobody knows what state it is in.
        let link = match place.take().filter(Link::is_open) {
            Some(link) => link,
            None => {
                let tables: Vec<_> = self.tables.iter().map(Table::relation).collect();
                self.server.connect(&tables).await?
            }
        };
        self.store(&link, pages).await?;
        *place = Some(link);
        Ok(())
    }
}

impl Postgres {
    /// An item that no table takes.
    fn stranger<'a>(&self, pages: &'a [Page]) -> Option<&'a Item> {
        let mut items = pages.iter().flat_map(|page| &page.items);
        items.find(|item| !self.tables.iter().any(|table| table.takes(item)))
    }
}

/// Rows as JSON arrays, each for one statement. Of items with one id the one fetched last is stored: one statement can't store two.
/// They are in the order of their ids, so that workers who store the same rows don't wait for each other in a circle.
fn batches<'a>(table: &Table, items: impl Iterator<Item = &'a Item>) -> Vec<String> {
    let mut latest: BTreeMap<&str, &Item> = BTreeMap::new();
    for item in items {
        let kept = latest.entry(item.id.as_str()).or_insert(item);
        // RFC 3339 in UTC, always as long: it sorts as the instants do.
        if item.fetched_at >= kept.fetched_at {
            *kept = item;
        }
    }
    let mut batches = Vec::new();
    let mut rows: Vec<String> = Vec::new();
    let mut bytes = 0;
    for item in latest.into_values() {
        let row: Map<String, Value> = table.row(item);
        let row = Value::Object(row).to_string();
        bytes += row.len();
        rows.push(row);
        if rows.len() == ROWS || bytes >= BYTES {
            batches.push(array(&rows));
            rows.clear();
            bytes = 0;
        }
    }
    if !rows.is_empty() {
        batches.push(array(&rows));
    }
    batches
}

fn array(rows: &[String]) -> String {
    format!("[{}]", rows.join(","))
}
