//! Sessions: each a hash that is replaced as a whole, if nobody else has done so.

use std::time::Duration;

use async_trait::async_trait;
use redis::Script;
use trawl_common::ports::{Error, ErrorKind, Result, Revision, Sessions, StoredSession};
use trawl_common::session::{SessionId, SessionState};

use crate::redis::scripts::session;
use crate::redis::{Link, keys};

/// Time for which a session is kept after it was written last.
const RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);

/// Sessions on Redis.
pub struct RedisSessions {
    redis: Link,
    write: Script,
}

impl RedisSessions {
    /// Creates the sessions on this connection.
    pub fn new(redis: Link) -> Self {
        Self { redis, write: session() }
    }
}

#[async_trait]
impl Sessions for RedisSessions {
    async fn read(&self, session: &SessionId, known: Revision) -> Result<Option<StoredSession>> {
        let key = keys::session(session);
        let revision: Option<Revision> =
            self.redis.query(redis::cmd("HGET").arg(&key).arg("revision")).await?;
        if revision.unwrap_or_default() == known {
            return Ok(None);
        }
        let (revision, state): (Option<Revision>, Option<String>) =
            self.redis.query(redis::cmd("HMGET").arg(&key).arg("revision").arg("state")).await?;
        let (Some(revision), Some(state)) = (revision, state) else {
            return Ok(Some(StoredSession::default()));
        };
        let state = serde_json::from_str(&state).map_err(|_| {
            let text = format!(
                "redis: the session {session} cannot be read: delete the key {key}, and it begins anew"
            );
            Error::new(ErrorKind::Corrupt, text)
        })?;
        Ok(Some(StoredSession { revision, state }))
    }

    async fn write(
        &self,
        session: &SessionId,
        expected: Revision,
        state: &SessionState,
    ) -> Result<Option<Revision>> {
        let mut call = self.write.key(keys::session(session));
        call.arg(expected).arg(state.to_json()).arg(RETENTION.as_millis() as u64);
        self.redis.run(&call).await
    }
}
