-- The tables of a state file. A URL costs an insertion at the end of `records` and of `fresh`, and later a share of a
-- sorted one in `seen`; its terminal state costs a search and a deletion. The partial indexes hold only parked and
-- urgent records.
--
-- An id in `records` is never used twice, so a URL that was seen and has no record there has ended.

CREATE TABLE crawls (
    key          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL,
    spider       TEXT NOT NULL,
    status       TEXT NOT NULL,
    discovered   INTEGER NOT NULL DEFAULT FALSE,
    started      INTEGER NOT NULL,
    ended        INTEGER,
    paused       INTEGER,
    idle         INTEGER NOT NULL DEFAULT 0,
    -- The time that no process had the file open while the crawl was unfinished, and the last time that one had.
    away         INTEGER NOT NULL DEFAULT 0,
    touched      INTEGER,
    -- The terms.
    recrawl      TEXT NOT NULL DEFAULT 'never',
    max_pages    INTEGER,
    max_per_host INTEGER,
    file         TEXT,
    replays      TEXT,
    -- How its result is judged.
    judging      TEXT,
    -- The counters.
    admitted     INTEGER NOT NULL DEFAULT 0,
    done         INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    skipped      INTEGER NOT NULL DEFAULT 0,
    expired      INTEGER NOT NULL DEFAULT 0,
    cancelled    INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0,
    left_out     INTEGER NOT NULL DEFAULT 0,
    UNIQUE (id, spider)
) STRICT;
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
CREATE TABLE sources (
    crawl TEXT PRIMARY KEY,
    named TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE seen (
    url    BLOB PRIMARY KEY,
    record INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE fresh (
    record INTEGER PRIMARY KEY,
    url    BLOB NOT NULL
) STRICT;
CREATE TABLE gone (
    record INTEGER PRIMARY KEY,
    crawl  INTEGER NOT NULL
) STRICT;
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
    attempts INTEGER NOT NULL DEFAULT 0,
    hop      TEXT,
    hops     INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0,
    lapses   INTEGER NOT NULL DEFAULT 0,
    turn     INTEGER,
    looks    INTEGER NOT NULL DEFAULT 0,
    since    INTEGER
) STRICT;
-- A parked task is found in the order of tasks, not among parked URLs.
CREATE INDEX parked ON records (due) WHERE due IS NOT NULL AND lane <> 'task';
CREATE INDEX parked_tasks ON records (due) WHERE due IS NOT NULL AND lane = 'task';
CREATE INDEX urgent ON records (id) WHERE lane = 'priority' AND due IS NULL;
CREATE TABLE failed (
    entry    INTEGER PRIMARY KEY,
    crawl    INTEGER NOT NULL,
    url      TEXT NOT NULL,
    terminal TEXT NOT NULL,
    note     TEXT NOT NULL,
    UNIQUE (crawl, url)
) STRICT;

-- The payloads of requests, which are handed out like URLs, in the order of records.
CREATE TABLE requests (
    crawl   INTEGER NOT NULL,
    key     TEXT NOT NULL,
    record  INTEGER,
    payload TEXT NOT NULL,
    PRIMARY KEY (crawl, key)
) STRICT;
CREATE TABLE tasks (
    crawl    INTEGER NOT NULL,
    key      TEXT NOT NULL,
    record   INTEGER,
    priority REAL NOT NULL,
    payload  TEXT NOT NULL,
    PRIMARY KEY (crawl, key)
) STRICT;
CREATE INDEX tasks_in_order ON tasks (priority DESC, record) WHERE record IS NOT NULL;
-- The tasks that have ended lately, as entries of a log.
CREATE TABLE ended_tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    sum    INTEGER NOT NULL,
    entry  TEXT NOT NULL
) STRICT;

-- The page history of each spider; for pages not visited yet only the depth.
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
    items      TEXT,
    answer     TEXT,
    UNIQUE (spider, url)
) STRICT;

-- The back-off and the block of a host; the next time for it by the requests sent so far, and the time when that was
-- written, in microseconds.
CREATE TABLE hosts (
    key     TEXT PRIMARY KEY,
    since   INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    strikes INTEGER NOT NULL,
    status  INTEGER NOT NULL,
    blocked INTEGER,
    next    INTEGER NOT NULL DEFAULT 0,
    at      INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Jobs, by the order in which they were submitted.
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

-- The instant up to which the schedule of each spider is done; none while it is paused.
CREATE TABLE schedules (
    spider TEXT PRIMARY KEY,
    until  INTEGER
) STRICT, WITHOUT ROWID;
-- The texts of spiders' files in their crawls, and the versions of projects.
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

-- The log. A number is never used twice, so a follower misses nothing.
CREATE TABLE logs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    sum    INTEGER NOT NULL,
    entry  TEXT NOT NULL
) STRICT;
-- The last heartbeat of the worker.
CREATE TABLE heartbeat (
    at     INTEGER NOT NULL,
    worker TEXT NOT NULL
) STRICT;

-- The sessions of spiders: their cookies and log-ins.
CREATE TABLE sessions (
    name     TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    state    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Machines that may do the work of projects, each with the digest of its key and its access by project.
CREATE TABLE runners (
    name   TEXT PRIMARY KEY,
    key    TEXT NOT NULL,
    since  INTEGER NOT NULL,
    asked  INTEGER NOT NULL,
    access TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Projects that people have made, each with its sealed secret, and the spiders of each.
CREATE TABLE projects (
    name    TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    secret  TEXT,
    source  TEXT,
    wanted  TEXT
) STRICT, WITHOUT ROWID;
-- Reports of machines on the wanted versions of projects.
CREATE TABLE version_reports (
    project TEXT NOT NULL,
    machine TEXT NOT NULL,
    report  TEXT NOT NULL,
    PRIMARY KEY (project, machine)
) STRICT, WITHOUT ROWID;
CREATE TABLE project_spiders (
    spider  TEXT PRIMARY KEY,
    project TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Why crawls are paused, where no person has done so.
CREATE TABLE pauses (
    crawl INTEGER PRIMARY KEY,
    why   TEXT NOT NULL
) STRICT;
