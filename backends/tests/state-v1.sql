-- A state file of version 1, with one of each: a URL that is done, one that failed, one that is pending, and their
-- keys in memory's share of the index.
PRAGMA application_id = 0x7472776c;
PRAGMA user_version = 1;
CREATE TABLE crawls (
    key        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL,
    spider     TEXT NOT NULL,
    status     TEXT NOT NULL,
    discovered INTEGER NOT NULL DEFAULT FALSE,
    started    INTEGER NOT NULL,
    ended      INTEGER,
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
CREATE TABLE fresh (
    url    BLOB NOT NULL,
    record INTEGER NOT NULL
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
    attempts INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX parked ON records (due) WHERE due IS NOT NULL;
CREATE INDEX urgent ON records (id) WHERE lane = 'priority' AND due IS NULL;
CREATE TABLE failed (
    crawl    INTEGER NOT NULL,
    url      TEXT NOT NULL,
    terminal TEXT NOT NULL,
    note     TEXT,
    at       INTEGER NOT NULL
) STRICT;
CREATE TABLE letters (
    url       TEXT NOT NULL,
    crawl     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    class     TEXT,
    status    INTEGER,
    error     TEXT NOT NULL,
    attempts  INTEGER NOT NULL,
    worker    TEXT,
    failed_at INTEGER NOT NULL
) STRICT;
INSERT INTO crawls (key, id, spider, status, started, admitted, done, failed) VALUES (1, 'c1', 's1', 'running', 1, 3, 1, 1);
INSERT INTO records (id, crawl, url, lane, depth) VALUES (3, 1, 'http://site.example/2', 'bulk', 0);
INSERT INTO failed VALUES (1, 'http://site.example/1', 'failed', '{"reason":"retries","class":"http","status":503,"error":"HTTP 503","attempts":4,"worker":"w1","failed_at":7}', 7);
INSERT INTO failed VALUES (1, 'http://site.example/9', 'failed', NULL, 7);
INSERT INTO letters VALUES ('http://site.example/1', 'c1', 'retries', 'http', 503, 'HTTP 503', 4, 'w1', 7);
