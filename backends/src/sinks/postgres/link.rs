//! One connection: opening it, preparing the tables, and storing rows.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::config::Host;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;
use trawl_common::frontier::outcome::Class;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::ServerUrl;
use trawl_web::Guard;

use super::error::failed;
use super::relation::{CHANGED_AT, Relation};
use super::table::quoted;
use crate::tls;

/// Time limit for accepting a connection; after it, a server counts as unavailable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The address of the database.
pub(crate) struct Server {
    url: ServerUrl,
    config: Config,
    /// The guard that has to allow its addresses; `None` if the owner of the machine chose them.
    guarded: Option<Guarded>,
}

/// A server that is connected to only where requests for pages are allowed.
struct Guarded {
    guard: Guard,
    host: String,
    port: u16,
}

/// An open connection to prepared tables.
pub(crate) struct Link {
    url: ServerUrl,
    client: Client,
    /// The task that transfers the bytes; it ends with this.
    _driver: AbortOnDropHandle<()>,
}

impl Server {
    /// Creates the server at `url`, with a `guard` if its addresses have to be allowed.
    pub(crate) fn new(url: &ServerUrl, guard: Option<&Guard>) -> Result<Self> {
        let refused = |why: &dyn std::fmt::Display| {
            let text = format!("postgres: {url}: {why}: write postgres://user:password@host:port/database");
            Error::new(ErrorKind::Refused, text)
        };
        // The parser's error for an invalid URL may quote it, including the password.
        let mut config: Config = url.reveal().parse().map_err(|_| refused(&"not understood"))?;
        if config.get_hosts().is_empty() {
            return Err(refused(&"no host is named"));
        }
        let guarded =
            guard.map(|guard| Guarded::new(&config, guard)).transpose().map_err(|why| refused(&why))?;
        // The password in this machine's own variable must not be sent to a server that someone else chose.
        if config.get_password().is_none()
            && guarded.is_none()
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
        Ok(Self { url: url.clone(), config, guarded })
    }

    /// Connects, and prepares these tables.
    pub(crate) async fn connect(&self, tables: &[Relation<'_>]) -> Result<Link> {
        let (client, connection) = match &self.guarded {
            None => self.open(&self.config).await?,
            Some(guarded) => self.open_guarded(guarded).await?,
        };
        let driver = tokio::spawn(async move {
            // The caller that waits for a reply gets the error.
            let _ = connection.await;
        });
        let link = Link { url: self.url.clone(), client, _driver: AbortOnDropHandle::new(driver) };
        for table in tables {
            link.prepare(table).await?;
        }
        Ok(link)
    }
}

type Encrypted = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
type Opened = (Client, Connection<Socket, Encrypted>);

impl Server {
    async fn open(&self, config: &Config) -> Result<Opened> {
        let tls = MakeRustlsConnect::new(tls::client(None));
        within(&self.url, CONNECT_TIMEOUT + CONNECT_TIMEOUT, config.connect(tls)).await
    }

    /// Connects to the exact addresses that were allowed, one after another.
    async fn open_guarded(&self, Guarded { guard, host, port }: &Guarded) -> Result<Opened> {
        let allowed = guard.addresses(host, *port).await.map_err(|failure| {
            let kind = match failure.class {
                Class::Forbidden => ErrorKind::Refused,
                _ => ErrorKind::Unavailable,
            };
            Error::new(kind, format!("postgres at {}: {failure}", self.url))
        })?;
        let mut opened =
            Err(Error::new(ErrorKind::Unavailable, format!("postgres at {}: no address", self.url)));
        for address in allowed {
            opened = self.open(self.config.clone().hostaddr(address.ip())).await;
            if opened.is_ok() {
                break;
            }
        }
        opened
    }
}

impl Guarded {
    /// Accepts one host, by name or address. Other connection options of a URL are ignored.
    fn new(config: &Config, guard: &Guard) -> std::result::Result<Self, &'static str> {
        let host = match config.get_hosts() {
            [Host::Tcp(host)] if config.get_hostaddrs().is_empty() => host.clone(),
            _ => {
                return Err(
                    "a spider that is deployed, or comes with a crawl, names one host, and no socket or `hostaddr`",
                );
            }
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        Ok(Self { guard: guard.clone(), host, port })
    }
}

impl Link {
    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Creates the table, or adds missing columns.
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

    /// Returns the types of its columns; empty if the table does not exist.
    async fn columns(&self, table: &Relation<'_>) -> Result<HashMap<String, String>> {
        let query = "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute \
                     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
        let rows = self.done(self.client.query(query, &[&quoted(&table.name)])).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Stores rows, a JSON array, replacing those with the same ids, unless these were fetched later.
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

/// Returns the statements that prepare a table, in one transaction. Workers that start together take turns: `IF
/// NOT EXISTS` alone fails if two create the same table.
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

/// Returns the upsert. A worker that was suspended and continues stores its older rows: rows that others have
/// fetched since stay.
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
        replaced = list(&|name, _| format!("{name} = {}", replacement(table, name))),
    )
}

/// Returns the expression for the new value of a column, given in quotes, of a row that is replaced.
fn replacement(table: &Relation<'_>, name: &str) -> String {
    let Some(content) = table.content.as_ref().filter(|_| name == quoted(CHANGED_AT)) else {
        return format!("excluded.{name}");
    };
    let row = |of: &str| {
        let columns: Vec<String> = content.iter().map(|column| format!("{of}.{}", quoted(column))).collect();
        format!("ROW({})", columns.join(", "))
    };
    match content.is_empty() {
        true => format!("kept.{name}"),
        false => format!(
            "CASE WHEN {} IS DISTINCT FROM {} THEN excluded.{name} ELSE kept.{name} END",
            row("kept"),
            row("excluded")
        ),
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::settings;

    use super::*;

    #[tokio::test]
    async fn a_database_that_a_delivered_spider_names_is_where_pages_may_be() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let guard = Guard::from_settings(settings::Fetch::default());
        let server = |url: &str| Server::new(&ServerUrl::new(url).guarded(), Some(&guard));
        for host in ["127.0.0.1", "localhost", "[::1]:6379", "169.254.169.254:80", "93.184.216.34:22"] {
            let server = server(&format!("postgres://u:s3cret@{host}/db")).unwrap();
            let error = server.connect(&[]).await.err().unwrap();
            let why = error.to_string();
            assert!(why.contains("is not a public address") || why.contains("fetch.ports"), "{host}: {why}");
            assert!(error.kind == ErrorKind::Refused && !why.contains("s3cret"), "{host}: {why}");
        }
        for url in [
            "postgres://u@%2Fvar%2Frun%2Fpostgresql/db",
            "postgres://u@db.example,other.example/db",
            "postgres://u@db.example/db?hostaddr=127.0.0.1",
        ] {
            let why = server(url).err().unwrap().to_string();
            assert!(why.contains("names one host"), "{url}: {why}");
        }
    }
}
