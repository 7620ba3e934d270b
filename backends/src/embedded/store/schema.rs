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

/// The version of the tables below (`user_version`).
const VERSION: i64 = 14;

/// The current tables. A URL costs an insertion at the end of `records` and of `fresh`, and later a share of a
/// sorted one in `seen`; its terminal state costs a search and a deletion. The partial indexes hold only parked
/// and urgent records.
///
/// An id in `records` is never used twice, so a URL that was seen and has no record there has ended.
const TABLES: &str = "
    CREATE TABLE crawls (
        key        INTEGER PRIMARY KEY,
        id         TEXT NOT NULL,
        spider     TEXT NOT NULL,
        status     TEXT NOT NULL,
        discovered INTEGER NOT NULL DEFAULT FALSE,
        started    INTEGER NOT NULL,
        ended      INTEGER,
        paused     INTEGER,
        idle       INTEGER NOT NULL DEFAULT 0,
        admitted   INTEGER NOT NULL DEFAULT 0,
        done       INTEGER NOT NULL DEFAULT 0,
        failed     INTEGER NOT NULL DEFAULT 0,
        skipped    INTEGER NOT NULL DEFAULT 0,
        expired    INTEGER NOT NULL DEFAULT 0,
        cancelled  INTEGER NOT NULL DEFAULT 0,
        UNIQUE (id, spider)
    ) STRICT;
    CREATE TABLE seen (
        url    BLOB PRIMARY KEY,
        record INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE records (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        crawl    INTEGER NOT NULL,
        url      TEXT NOT NULL,
        lane     TEXT NOT NULL,
        depth    INTEGER NOT NULL,
        referrer TEXT,
        deadline INTEGER,
        due      INTEGER,
        slot     INTEGER,
        starts   INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX parked ON records (due) WHERE due IS NOT NULL;
    CREATE INDEX urgent ON records (id) WHERE lane = 'priority' AND due IS NULL;
";

/// The tables that have not changed since version 2.
const TABLES_OF_2: &str = "
    CREATE TABLE fresh (
        record INTEGER PRIMARY KEY,
        url    BLOB NOT NULL
    ) STRICT;
    CREATE TABLE gone (
        record INTEGER PRIMARY KEY,
        crawl  INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE failed (
        entry    INTEGER PRIMARY KEY,
        crawl    INTEGER NOT NULL,
        url      TEXT NOT NULL,
        terminal TEXT NOT NULL,
        note     TEXT NOT NULL,
        UNIQUE (crawl, url)
    ) STRICT;
";

/// The additions of version 3: redirects, refusals of hosts, positions in the host's waitlist, and the back-offs
/// of hosts.
const OUT_OF_2: &str = "
    ALTER TABLE records ADD COLUMN hop TEXT;
    ALTER TABLE records ADD COLUMN hops INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE records ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE records ADD COLUMN turn INTEGER;
    ALTER TABLE records ADD COLUMN looks INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE hosts (
        key     TEXT PRIMARY KEY,
        since   INTEGER NOT NULL,
        until   INTEGER NOT NULL,
        strikes INTEGER NOT NULL,
        status  INTEGER NOT NULL,
        blocked INTEGER
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 3;
";

/// The additions of version 4: the terms of a crawl, and more of its stats.
const OUT_OF_3: &str = "
    ALTER TABLE crawls ADD COLUMN recrawl TEXT NOT NULL DEFAULT 'never';
    ALTER TABLE crawls ADD COLUMN max_pages INTEGER;
    ALTER TABLE crawls ADD COLUMN max_per_host INTEGER;
    ALTER TABLE crawls ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE crawls ADD COLUMN left_out INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE crawl_reasons (
        crawl  INTEGER NOT NULL,
        reason TEXT NOT NULL,
        count  INTEGER NOT NULL,
        PRIMARY KEY (crawl, reason)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE crawl_hosts (
        crawl     INTEGER NOT NULL,
        host      TEXT NOT NULL,
        admitted  INTEGER NOT NULL,
        done      INTEGER NOT NULL,
        failed    INTEGER NOT NULL,
        skipped   INTEGER NOT NULL,
        expired   INTEGER NOT NULL,
        cancelled INTEGER NOT NULL,
        bytes     INTEGER NOT NULL,
        PRIMARY KEY (crawl, host)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 4;
";

/// The additions of version 5: the time that no process had the file open while a crawl was unfinished, the last
/// time that one had, and the sources of each crawl.
const OUT_OF_4: &str = "
    ALTER TABLE crawls ADD COLUMN away INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE crawls ADD COLUMN touched INTEGER;
    CREATE TABLE sources (
        crawl TEXT PRIMARY KEY,
        named TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 5;
";

/// The additions of version 6: the number of items of a page.
const OUT_OF_5: &str = "
    ALTER TABLE pages ADD COLUMN items TEXT;
    PRAGMA user_version = 6;
";

/// The additions of version 7: jobs, by the order in which they were submitted.
const OUT_OF_6: &str = "
    CREATE TABLE jobs (
        number          INTEGER PRIMARY KEY AUTOINCREMENT,
        id              TEXT NOT NULL UNIQUE,
        spider          TEXT NOT NULL,
        priority        REAL NOT NULL,
        idempotency_key TEXT UNIQUE,
        new             TEXT NOT NULL,
        asked           INTEGER NOT NULL,
        status          TEXT NOT NULL,
        runner          TEXT,
        started         INTEGER,
        until           INTEGER,
        is_cancelled    INTEGER NOT NULL,
        problem         TEXT,
        ended           INTEGER,
        looked          INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX jobs_line ON jobs (priority DESC, number) WHERE status = 'pending';
    CREATE INDEX jobs_of_spider ON jobs (spider, status);
    CREATE INDEX jobs_held ON jobs (until) WHERE until IS NOT NULL;
    CREATE INDEX jobs_ended ON jobs (ended) WHERE ended IS NOT NULL;
    PRAGMA user_version = 7;
";

/// The additions of version 8: the texts of spiders' files in their crawls, the versions of projects, and the
/// instant up to which the schedule of each spider is done; none while it is paused.
const OUT_OF_7: &str = "
    ALTER TABLE crawls ADD COLUMN file TEXT;
    CREATE TABLE spider_texts (
        crawl INTEGER PRIMARY KEY,
        text  TEXT NOT NULL
    ) STRICT;
    CREATE TABLE versions (
        number  INTEGER PRIMARY KEY AUTOINCREMENT,
        project TEXT NOT NULL,
        version TEXT NOT NULL,
        added   INTEGER NOT NULL,
        spiders TEXT NOT NULL,
        UNIQUE (project, version)
    ) STRICT;
    CREATE TABLE schedules (
        spider TEXT PRIMARY KEY,
        until  INTEGER
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 8;
";

/// The additions of version 9: the log. A number is never used twice, so a follower misses nothing.
const OUT_OF_8: &str = "
    CREATE TABLE logs (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        sum    INTEGER NOT NULL,
        entry  TEXT NOT NULL
    ) STRICT;
    PRAGMA user_version = 9;
";

/// The additions of version 10: the payloads of tasks. A parked task is found in the order of tasks, not among
/// parked URLs.
const OUT_OF_9: &str = "
    CREATE TABLE tasks (
        crawl    INTEGER NOT NULL,
        key      TEXT NOT NULL,
        record   INTEGER,
        priority REAL NOT NULL,
        payload  TEXT NOT NULL,
        PRIMARY KEY (crawl, key)
    ) STRICT;
    CREATE INDEX tasks_in_order ON tasks (priority DESC, record) WHERE record IS NOT NULL;
    DROP INDEX parked;
    CREATE INDEX parked ON records (due) WHERE due IS NOT NULL AND lane <> 'task';
    CREATE INDEX parked_tasks ON records (due) WHERE due IS NOT NULL AND lane = 'task';
    PRAGMA user_version = 10;
";

/// The additions of version 11: the payloads of requests. They are handed out like URLs, in the order of records.
const OUT_OF_10: &str = "
    CREATE TABLE requests (
        crawl   INTEGER NOT NULL,
        key     TEXT NOT NULL,
        record  INTEGER,
        payload TEXT NOT NULL,
        PRIMARY KEY (crawl, key)
    ) STRICT;
    PRAGMA user_version = 11;
";

/// The additions of version 12: the next time for each host, by the requests sent so far, and the time when that
/// was written, in microseconds.
const OUT_OF_11: &str = "
    ALTER TABLE hosts ADD COLUMN next INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
    PRAGMA user_version = 12;
";

/// The additions of version 13: the answer to the last request for a page.
const OUT_OF_12: &str = "
    ALTER TABLE pages ADD COLUMN answer TEXT;
    PRAGMA user_version = 13;
";

/// The additions of version 14: the tasks that have ended lately, as entries of a log.
const OUT_OF_13: &str = "
    CREATE TABLE ended_tasks (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        sum    INTEGER NOT NULL,
        entry  TEXT NOT NULL
    ) STRICT;
    PRAGMA user_version = 14;
";

/// The page history of each spider, also of version 4; for pages not visited yet only the depth.
const PAGES: &str = "
    CREATE TABLE pages (
        entry      INTEGER PRIMARY KEY,
        spider     TEXT NOT NULL,
        url        TEXT NOT NULL,
        depth      INTEGER NOT NULL,
        fetched_at INTEGER,
        change     TEXT,
        content    BLOB,
        etag       TEXT,
        modified   TEXT,
        UNIQUE (spider, url)
    ) STRICT;
";

/// The last heartbeat of the worker. Programs that do not know the table leave it alone, so it needs no version of its own.
const HEARTBEAT: &str =
    "CREATE TABLE IF NOT EXISTS heartbeat (at INTEGER NOT NULL, worker TEXT NOT NULL) STRICT;";

/// Sessions, and why crawls are paused, if no person has done so; likewise.
const SESSIONS: &str = "
    CREATE TABLE IF NOT EXISTS sessions (
        name     TEXT PRIMARY KEY,
        revision INTEGER NOT NULL,
        state    TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS pauses (
        crawl INTEGER PRIMARY KEY,
        why   TEXT NOT NULL
    ) STRICT;
";

/// The changes to a file of version 1 that make room for the new tables.
const OUT_OF_1: &str = "
    ALTER TABLE crawls ADD COLUMN paused INTEGER;
    ALTER TABLE crawls ADD COLUMN idle INTEGER NOT NULL DEFAULT 0;
    INSERT INTO seen (url, record) SELECT url, record FROM fresh ORDER BY url;
    DROP TABLE fresh;
    ALTER TABLE failed RENAME TO failed_1;
    DROP TABLE letters;
";

/// The statements that fill the new tables from version 1, which did not store the lane of a failed URL.
const INTO_2: &str = "
    INSERT INTO failed (crawl, url, terminal, note)
        SELECT crawl, url, terminal, iif(json_valid(note), json_set(note, '$.lane', 'bulk', '$.depth', 0), note)
        FROM failed_1 WHERE note IS NOT NULL;
    DROP TABLE failed_1;
";

/// The steps that take a file of each version to the next one, in order.
const STEPS: [(i64, &str); 13] = [
    (2, OUT_OF_2),
    (3, OUT_OF_3),
    (3, PAGES),
    (4, OUT_OF_4),
    (5, OUT_OF_5),
    (6, OUT_OF_6),
    (7, OUT_OF_7),
    (8, OUT_OF_8),
    (9, OUT_OF_9),
    (10, OUT_OF_10),
    (11, OUT_OF_11),
    (12, OUT_OF_12),
    (13, OUT_OF_13),
];

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
        (APPLICATION, other) => format!("has schema version {other}, and this program knows {VERSION}"),
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
    let from = match (number(&tx, "PRAGMA application_id")?, number(&tx, "PRAGMA user_version")?) {
        (0, 0) if is_new => {
            tx.execute_batch(&format!("{TABLES} {TABLES_OF_2} PRAGMA application_id = {APPLICATION};"))?;
            2
        }
        (APPLICATION, 1) => {
            tx.execute_batch(&format!("{OUT_OF_1} {TABLES_OF_2} {INTO_2}"))?;
            2
        }
        (APPLICATION, version @ 2..VERSION) => version,
        (application, version) => {
            check(application, version)?;
            VERSION
        }
    };
    for (_, step) in STEPS.iter().filter(|(version, _)| *version >= from) {
        tx.execute_batch(step)?;
    }
    tx.execute_batch(HEARTBEAT)?;
    tx.execute_batch(SESSIONS)?;
    tx.commit()?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    Ok(())
}
