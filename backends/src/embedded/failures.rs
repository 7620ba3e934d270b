//! The tables `failed` and `letters`: what reached no good end, for people to look at.

use rusqlite::{Connection, params};
use trawl_common::letter::DeadLetter;
use trawl_common::ports::Finish;
use trawl_common::time::UnixMs;

use super::error::Result;
use super::records::sql_ms;

/// Keeps what is known of a URL whose terminal state is a failure.
pub(super) fn keep(db: &Connection, crawl: i64, finish: &Finish) -> Result<()> {
    db.prepare_cached("INSERT INTO failed (crawl, url, terminal, note, at) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![
            crawl,
            finish.claim.url.as_str(),
            finish.terminal.as_str(),
            finish.note,
            sql_ms(UnixMs::now()),
        ])?;
    Ok(())
}

/// Stores a dead letter.
pub(super) fn post(db: &Connection, letter: &DeadLetter) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO letters (url, crawl, reason, class, status, error, attempts, worker, failed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        letter.url,
        letter.crawl.id.as_str(),
        letter.reason.as_str(),
        letter.class.map(|class| class.as_str()),
        letter.status,
        letter.error,
        letter.attempts,
        letter.worker.as_ref().map(|worker| worker.as_str()),
        sql_ms(letter.failed_at),
    ])?;
    Ok(())
}
