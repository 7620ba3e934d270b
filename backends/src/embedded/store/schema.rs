//! The state file: its tables, and opening it.

use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use trawl_common::ports::{Error, ErrorKind, Result};

use crate::embedded::store::error::Fault;
use crate::embedded::store::file_lock::FileLock;

/// The `application_id` of trawl's files: "trwl".
const APPLICATION: i64 = 0x7472_776c;

/// The version of the tables (`user_version`).
const VERSION: i64 = 20;

/// The tables.
const TABLES: &str = include_str!("tables.sql");

/// Opens the state file at `path` for changes by this process alone; creates it if there is none, readable only by
/// its owner.
pub(crate) fn open(path: &Path) -> Result<State> {
    let lock = FileLock::wait(path).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => in_use(path),
        _ => Error::new(ErrorKind::Unavailable, format_args!("{} cannot be opened: {error}", path.display())),
    })?;
    if lock.names > 1 {
        return Err(named_twice(path));
    }
    let db = Connection::open(&lock.state).map_err(Fault::from);
    let db = db.and_then(|mut db| prepare(&mut db).map(|()| db));
    Ok(State { db: db.map_err(|fault| unusable(fault, path))?, _lock: Some(lock) })
}

/// Opens the state file at `path` for looking only: another process may be changing it.
pub(crate) fn watch(path: &Path) -> Result<State> {
    let open = || -> std::result::Result<Connection, Fault> {
        // Not read-only: after a crash SQLite has to recover its log before anything can be read.
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        check(number(&db, "PRAGMA application_id")?, number(&db, "PRAGMA user_version")?)?;
        db.execute_batch("PRAGMA query_only = ON")?;
        Ok(db)
    };
    Ok(State { db: open().map_err(|fault| unusable(fault, path))?, _lock: None })
}

/// Opens a store with the same tables, without a file.
pub(crate) fn in_memory() -> Result<State> {
    let mut db = Connection::open_in_memory().map_err(Fault::from)?;
    prepare(&mut db)?;
    Ok(State { db, _lock: None })
}

fn in_use(path: &Path) -> Error {
    let way_out =
        "stop that first (Ctrl-C); `trawl status`, `logs`, `dlq list` and `dlq show` look into it meanwhile";
    let text = format!("{} is in use by another trawl process: {way_out}", path.display());
    Error::new(ErrorKind::Busy, text)
}

/// Returns the error for a file with two names. SQLite keeps changes that are not in the file yet beside one of
/// its names: after a crash, a process that opened it by another name would find half of it.
fn named_twice(path: &Path) -> Error {
    let text =
        "has another name, as a hard link: remove one of them, or copy the file in place of linking it";
    Error::new(ErrorKind::Refused, format_args!("{} {text}", path.display()))
}

/// Returns the error for a state file at `path` that cannot be used.
pub(crate) fn unusable(fault: Fault, path: &Path) -> Error {
    let file = path.display();
    let error = match fault {
        Fault::Sqlite(error) => error,
        Fault::Rule(error) => return Error::new(error.kind, format_args!("{file} {error}")),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => in_use(path),
        Some(ErrorCode::NotADatabase) => {
            Error::new(ErrorKind::Refused, format_args!("{file} is not a state file of trawl"))
        }
        _ => Error::new(ErrorKind::Unavailable, format_args!("{file} cannot be opened: {error}")),
    }
}

/// An open state file.
pub(crate) struct State {
    /// Closed first: until then nobody else may have the file.
    pub(crate) db: Connection,
    _lock: Option<FileLock>,
}

/// Time that a statement waits for a process that only looks.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks that a file with this application id and schema version is one that this program knows.
fn check(application: i64, version: i64) -> std::result::Result<(), Fault> {
    let refused = match (application, version) {
        (APPLICATION, VERSION) => return Ok(()),
        (APPLICATION, other) => format!(
            "has schema version {other}, and this program knows {VERSION}: go on with the trawl that made it, or begin \
             another file"
        ),
        _ => "is not a state file of trawl".to_owned(),
    };
    Err(Error::new(ErrorKind::Refused, refused).into())
}

fn number(db: &Connection, sql: &str) -> rusqlite::Result<i64> {
    db.query_row(sql, [], |row| row.get(0))
}

/// Sets the file up, and checks or creates its tables. Temporary journals stay in memory, because a savepoint for
/// each job would otherwise write a file.
fn prepare(db: &mut Connection) -> std::result::Result<(), Fault> {
    db.busy_timeout(Duration::ZERO)?;
    db.set_prepared_statement_cache_capacity(64);
    // Otherwise the planner would check whether each value fits a partial index, and so compile the statement
    // again.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -65536;
         PRAGMA wal_autocheckpoint = 8192;",
    )?;
    let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let is_new = number(&tx, "SELECT count(*) FROM sqlite_schema")? == 0;
    match (number(&tx, "PRAGMA application_id")?, number(&tx, "PRAGMA user_version")?) {
        (0, 0) if is_new => {
            tx.execute_batch(TABLES)?;
            tx.pragma_update(None, "application_id", APPLICATION)?;
            tx.pragma_update(None, "user_version", VERSION)?;
        }
        (application, version) => check(application, version)?,
    }
    tx.commit()?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    Ok(())
}
