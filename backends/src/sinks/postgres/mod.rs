//! Items as rows of PostgreSQL: a table for each kind of item, created from the spider, and upserts by id.

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

/// Maximum number of rows in one statement.
const MAX_ROWS: usize = 500;
/// Size of a statement in bytes beyond which no further row is added.
const MAX_STATEMENT_BYTES: usize = 8 << 20;

/// A database. It is connected to for the first page, and again after the connection broke.
pub struct Postgres {
    name: String,
    server: link::Server,
    tables: Vec<Table>,
    link: Mutex<Option<Link>>,
}

impl Postgres {
    /// Creates the sink of `spider`. Without `table`, each kind of item has its own, named after the kind, or
    /// after the spider. A server chosen by someone who does not own the machine must be where requests for pages
    /// are allowed by default.
    pub fn new(url: &ServerUrl, table: Option<&str>, spider: &Spider) -> Result<Self> {
        Self::with(url, table, spider, &Guard::from_settings(settings::Fetch::default()))
    }

    /// Like [`Postgres::new`], with a `guard` for the addresses of such a server.
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
        // Taken out during the call: if the call fails or is cancelled, the connection is in an unknown state.
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
    /// Returns an item that no table takes, if there is one.
    fn stranger<'a>(&self, pages: &'a [Page]) -> Option<&'a Item> {
        let mut items = pages.iter().flat_map(|page| &page.items);
        items.find(|item| !self.tables.iter().any(|table| table.takes(item)))
    }
}

/// Returns rows as JSON arrays, one for each statement. If several items have the same id, the one fetched last is
/// stored, because one statement cannot store two. Rows are in the order of their ids, so that workers that store
/// the same rows do not deadlock.
fn batches<'a>(table: &Table, items: impl Iterator<Item = &'a Item>) -> Vec<String> {
    let mut latest: BTreeMap<&str, &Item> = BTreeMap::new();
    for item in items {
        let kept = latest.entry(item.id.as_str()).or_insert(item);
        // RFC 3339 in UTC has a fixed length, so texts sort like instants.
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
        if rows.len() == MAX_ROWS || bytes >= MAX_STATEMENT_BYTES {
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
