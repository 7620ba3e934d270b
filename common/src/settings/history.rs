//! `[history]`: what is kept for good of crawls, jobs and pages.

use serde::{Deserialize, Serialize};

use super::ServerUrl;

/// `[history]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// The database that keeps it: `postgres://user:password@host:port/database`. Without one there is no history.
    #[serde(default)]
    pub postgres: Option<ServerUrl>,
}
