//! Sessions in the state file.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use trawl_common::ports::{Error, ErrorKind, Result, Revision, Sessions, StoredSession};
use trawl_common::session::{SessionId, SessionState};

use crate::embedded::store::Store;
use crate::embedded::store::error;

/// Sessions in one state file.
pub(super) struct EmbeddedSessions(pub(super) Arc<Store>);

#[async_trait]
impl Sessions for EmbeddedSessions {
    async fn read(&self, session: &SessionId, known: Revision) -> Result<Option<StoredSession>> {
        let name = session.to_string();
        let found = self.0.call(move |db, _| find(db, &name)).await?;
        let (revision, state) = found.unwrap_or_default();
        if revision == known {
            return Ok(None);
        }
        let unreadable = |_| {
            let text = format!("the session {session} in the state file cannot be read");
            Error::new(ErrorKind::Corrupt, text)
        };
        let state = serde_json::from_str(&state).map_err(unreadable)?;
        Ok(Some(StoredSession { revision, state }))
    }

    async fn write(
        &self,
        session: &SessionId,
        expected: Revision,
        state: &SessionState,
    ) -> Result<Option<Revision>> {
        let (name, state) = (session.to_string(), state.to_json());
        self.0
            .call(move |db, _| {
                if find(db, &name)?.unwrap_or_default().0 != expected {
                    return Ok(None);
                }
                let revision = expected + 1;
                db.prepare_cached(
                    "INSERT OR REPLACE INTO sessions (name, revision, state) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![
                    name,
                    i64::try_from(revision).unwrap_or(i64::MAX),
                    state
                ])?;
                Ok(Some(revision))
            })
            .await
    }
}

/// Returns the revision and the state of a session.
fn find(db: &Connection, name: &str) -> error::Result<Option<(Revision, String)>> {
    let mut select = db.prepare_cached("SELECT revision, state FROM sessions WHERE name = ?1")?;
    let found = select.query_row([name], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional()?;
    Ok(found.map(|(revision, state)| (u64::try_from(revision).unwrap_or_default(), state)))
}
