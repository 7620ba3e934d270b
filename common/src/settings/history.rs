//! `[history]`: the permanent record of crawls, jobs, pages and the log.

use serde::{Deserialize, Serialize};

use super::ServerUrl;

/// `[history]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// The database of the history: `postgres://user:password@host:port/database`. Without one there is no
    /// history.
    #[serde(default)]
    pub postgres: Option<ServerUrl>,
    /// Whether it also keeps the entries of the fleet's log.
    #[serde(default)]
    pub logs: bool,
}
