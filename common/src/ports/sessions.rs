//! Sessions of spiders at sites.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::session::{SessionId, SessionState};

/// Stores sessions for all workers, beyond the end of every process. A session is replaced as a whole, and only if
/// nobody else has replaced it since it was read.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Returns a session, unless its revision is still `known`.
    async fn read(&self, session: &SessionId, known: Revision) -> Result<Option<StoredSession>>;

    /// Replaces a session whose revision is `expected`. Returns the new revision; `None` if it had another one, and
    /// then nothing is changed. Durable when it returns.
    ///
    /// A call that is repeated because its answer was lost may return `None` although it has succeeded.
    async fn write(
        &self,
        session: &SessionId,
        expected: Revision,
        state: &SessionState,
    ) -> Result<Option<Revision>>;
}

/// The number of times that a session was written; 0 for one that does not exist.
pub type Revision = u64;

/// A session as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredSession {
    /// Its revision.
    pub revision: Revision,
    /// The session; empty if there is none.
    pub state: SessionState,
}
