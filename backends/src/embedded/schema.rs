//! The state file: its tables, and how it is opened.

use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use trawl_common::ports::{Error, ErrorKind, Result};

use super::error::Fault;
use super::file_lock::FileLock;

/// Marks a file as ours (`application_id`): "trwl".
const APPLICATION: i64 = 0x7472_776c;

/// The version of the tables below (`user_version`).
const VERSION: i64 = 12;

/// A URL costs an insertion at the end of `records` and of `fresh`, and later a share of a sorted one in
/// `seen`; its terminal state costs a search and a deletion. The partial indexes hold only what was parked
/// or is urgent.
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

/// The tables that are as version 2 has them.
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

/// What version 3 has more: where a redirect led, how often its host refused, its place in the host's waitlist, and
/// what hosts asked for.
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

/// What version 4 has more: what a crawl is bound to, and more of its stats.
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

/// What version 5 has more: for how long no process had the file open while a crawl was not over, when one last did, and
/// what each crawl began with.
const OUT_OF_4: &str = "
    ALTER TABLE crawls ADD COLUMN away INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE crawls ADD COLUMN touched INTEGER;
    CREATE TABLE sources (
        crawl TEXT PRIMARY KEY,
        named TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 5;
";

/// What version 6 has more: how many items a page had.
const OUT_OF_5: &str = "
    ALTER TABLE pages ADD COLUMN items TEXT;
    PRAGMA user_version = 6;
";

/// What version 7 has more: jobs, by the order in which they were asked for.
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

/// What version 8 has more: what the files of spiders say in their crawls, the versions of projects, and up to when the schedule of
/// each spider is done; nothing while it is held.
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

/// What version 9 has more: the log. A number is never used twice, so that who follows it misses nothing.
const OUT_OF_8: &str = "
    CREATE TABLE logs (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        sum    INTEGER NOT NULL,
        entry  TEXT NOT NULL
    ) STRICT;
    PRAGMA user_version = 9;
";

/// What version 10 has more: what tasks say. A task that is parked is found in the order of tasks, and not among parked URLs.
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

/// What version 11 has more: what requests say. They are handed out as URLs are, in the order of records.
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

/// What version 12 has more: when each host may be asked next, by what it was asked so far, and when that was written, in microseconds.
const OUT_OF_11: &str = "
    ALTER TABLE hosts ADD COLUMN next INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
    PRAGMA user_version = 12;
";

/// What each spider remembers of pages, of version 4 too; of those not visited yet the depth alone.
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

/// What makes room in a file of version 1 for them.
const OUT_OF_1: &str = "
    ALTER TABLE crawls ADD COLUMN paused INTEGER;
    ALTER TABLE crawls ADD COLUMN idle INTEGER NOT NULL DEFAULT 0;
    INSERT INTO seen (url, record) SELECT url, record FROM fresh ORDER BY url;
    DROP TABLE fresh;
    ALTER TABLE failed RENAME TO failed_1;
    DROP TABLE letters;
";

/// What fills them from it. It did not say in which lane a URL had failed.
const INTO_2: &str = "
    INSERT INTO failed (crawl, url, terminal, note)
        SELECT crawl, url, terminal, iif(json_valid(note), json_set(note, '$.lane', 'bulk', '$.depth', 0), note)
        FROM failed_1 WHERE note IS NOT NULL;
    DROP TABLE failed_1;
";

/// What takes a file of each version to the next one, in order.
const STEPS: [(i64, &str); 11] = [
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
];

/// The state file at `path`, which this process alone may change; created where there is none, for its owner's eyes only.
pub(super) fn open(path: &Path) -> Result<State> {
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

/// The state file at `path` as it is at each moment, for one who only looks: another process may be changing it.
pub(super) fn watch(path: &Path) -> Result<State> {
    let open = || -> std::result::Result<Connection, Fault> {
        // Not read-only: after a crash SQLite has to mend its log before anything can be read.
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        check(number(&db, "PRAGMA application_id")?, number(&db, "PRAGMA user_version")?)?;
        db.execute_batch("PRAGMA query_only = ON")?;
        Ok(db)
    };
    Ok(State { db: open().map_err(|fault| unusable(fault, path))?, _lock: None })
}

/// A store of the same shape without a file.
pub(super) fn in_memory() -> Result<State> {
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

/// SQLite keeps what is not in the file yet beside one of its names: after a crash, whoever opens it by another finds half of it.
fn named_twice(path: &Path) -> Error {
    let text =
        "has another name, as a hard link: remove one of them, or copy the file in place of linking it";
    Error::new(ErrorKind::Refused, format_args!("{} {text}", path.display()))
}

/// The error of one who cannot use the state file at `path`.
pub(super) fn unusable(fault: Fault, path: &Path) -> Error {
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
pub(super) struct State {
    /// Closed first: until then nobody else may have the file.
    pub(super) db: Connection,
    _lock: Option<FileLock>,
}

/// How long a statement waits for one who only looks.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a file of this application id and version of schema is one that this program knows.
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

/// Sets the file up, and checks or creates its tables. Temporary journals stay in memory: a savepoint for each job would
/// else write a file.
fn prepare(db: &mut Connection) -> std::result::Result<(), Fault> {
    db.busy_timeout(Duration::ZERO)?;
    db.set_prepared_statement_cache_capacity(64);
    // The planner would else look at each value to see whether a partial index fits it, and so compile the statement anew.
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
    tx.commit()?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    Ok(())
}
