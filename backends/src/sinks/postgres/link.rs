//! One connection: opened, the tables made ready, and rows stored through it.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::ServerUrl;

use super::error::failed;
use super::relation::Relation;
use super::table::quoted;
use crate::tls;

/// Within this time a server accepts a connection, or counts as away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Within this time it carries out a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the database is.
pub(crate) struct Server {
    url: ServerUrl,
    config: Config,
}

/// An open connection to tables that fit.
pub(crate) struct Link {
    url: ServerUrl,
    client: Client,
    /// What moves the bytes; it ends with this.
    _driver: AbortOnDropHandle<()>,
}

impl Server {
    pub(crate) fn new(url: &ServerUrl) -> Result<Self> {
        let refused = |why: &dyn std::fmt::Display| {
            let text = format!("postgres: {url}: {why}: write postgres://user:password@host:port/database");
            Error::new(ErrorKind::Refused, text)
        };
        // What the parser says of a wrong URL may quote it, password and all.
        let mut config: Config = url.reveal().parse().map_err(|_| refused(&"not understood"))?;
        if config.get_hosts().is_empty() {
            return Err(refused(&"no host is named"));
        }
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        let own = format!("-c timezone=UTC -c statement_timeout={}", STATEMENT_TIMEOUT.as_millis());
        let options = config.get_options().map_or(own.clone(), |theirs| format!("{own} {theirs}"));
        config
            .options(options)
            .application_name("trawl")
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(STATEMENT_TIMEOUT);
        Ok(Self { url: url.clone(), config })
    }

    /// Connects, and makes these tables ready.
    pub(crate) async fn connect(&self, tables: &[Relation<'_>]) -> Result<Link> {
        let tls = MakeRustlsConnect::new(tls::client(None));
        let (client, connection) =
            within(&self.url, CONNECT_TIMEOUT + CONNECT_TIMEOUT, self.config.connect(tls)).await?;
        let driver = tokio::spawn(async move {
            // Whoever waits for a reply gets the error.
            let _ = connection.await;
        });
        let link = Link { url: self.url.clone(), client, _driver: AbortOnDropHandle::new(driver) };
        for table in tables {
            link.prepare(table).await?;
        }
        Ok(link)
    }
}

impl Link {
    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Creates the table, or adds the columns that it lacks.
    async fn prepare(&self, table: &Relation<'_>) -> Result<()> {
        let found = self.columns(table).await?;
        for (name, wanted) in table.columns.iter() {
            let wanted = wanted.as_str();
            if let Some(kind) = found.get(*name).filter(|kind| **kind != wanted) {
                let text = format!(
                    "postgres at {}: in the table {} the column {name} is {kind}, and trawl has {wanted} for it: alter its \
                     type, or name another table",
                    self.url, table.name
                );
                return Err(Error::new(ErrorKind::Refused, text));
            }
        }
        if table.columns.iter().all(|(name, _)| found.contains_key(*name)) {
            return Ok(());
        }
        self.done(self.client.batch_execute(&ready(table))).await
    }

    /// The types of its columns; none, if it is not there.
    async fn columns(&self, table: &Relation<'_>) -> Result<HashMap<String, String>> {
        let query = "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute \
                     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
        let rows = self.done(self.client.query(query, &[&quoted(&table.name)])).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Stores rows, a JSON array, in place of those with the same ids, unless these were fetched later.
    pub(crate) async fn upsert(&self, table: &Relation<'_>, rows: &String) -> Result<()> {
        self.done(self.client.execute(&upsert(table), &[rows])).await.map(drop)
    }

    async fn done<T>(
        &self,
        call: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        within(&self.url, STATEMENT_TIMEOUT + CONNECT_TIMEOUT, call).await
    }
}

async fn within<T>(
    url: &ServerUrl,
    limit: Duration,
    call: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
) -> Result<T> {
    match tokio::time::timeout(limit, call).await {
        Ok(result) => result.map_err(|error| failed(url, &error)),
        Err(_) => {
            let text = format!("postgres at {url}: no answer within {} s", limit.as_secs());
            Err(Error::new(ErrorKind::Unavailable, text))
        }
    }
}

/// What makes a table ready, in one transaction. Workers that start together take turns: `IF NOT EXISTS` alone fails if two
/// create the same.
fn ready(table: &Relation<'_>) -> String {
    let name = quoted(&table.name);
    let columns: String = table
        .columns
        .iter()
        .filter(|(name, _)| *name != "id")
        .map(|(name, kind)| format!(", ADD COLUMN IF NOT EXISTS {} {}", quoted(name), kind.as_str()))
        .collect();
    format!(
        "BEGIN; SELECT pg_advisory_xact_lock(hashtext('trawl')); \
         CREATE TABLE IF NOT EXISTS {name} (id text PRIMARY KEY); \
         ALTER TABLE {name} {}; COMMIT",
        columns.trim_start_matches(", ")
    )
}

/// A worker that was stopped and wakes up stores what it had fetched: what others have fetched since stays.
fn upsert(table: &Relation<'_>) -> String {
    let columns = || table.columns.iter();
    let list = |part: &dyn Fn(&str, &str) -> String| {
        let parts: Vec<String> = columns().map(|(name, kind)| part(&quoted(name), kind.as_str())).collect();
        parts.join(", ")
    };
    format!(
        "INSERT INTO {} AS kept ({names}) SELECT {names} FROM jsonb_to_recordset($1::text::jsonb) AS rows ({typed}) \
         ON CONFLICT (id) DO UPDATE SET {replaced} \
         WHERE kept.{latest} IS NULL OR kept.{latest} <= excluded.{latest}",
        quoted(&table.name),
        latest = table.latest_by,
        names = list(&|name, _| name.to_owned()),
        typed = list(&|name, kind| format!("{name} {kind}")),
        replaced = list(&|name, _| format!("{name} = excluded.{name}")),
    )
}
