//! `[history]`: what is kept for good of crawls, jobs, pages and the log.

use serde::{Deserialize, Serialize};

use super::ServerUrl;

/// `[history]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// The database that keeps it: `postgres://user:password@host:port/database`. Without one there is no history.
    #[serde(default)]
    pub postgres: Option<ServerUrl>,
    /// Whether it keeps what the fleet's log says, too.
    #[serde(default)]
    pub logs: bool,
}
