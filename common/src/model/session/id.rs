//! The name of a session.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names::SpiderName;

/// The spiders that a session belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionOwner {
    /// One spider.
    Spider(SpiderName),
    /// All spiders that name it.
    Shared(Arc<str>),
}

/// The name of a session. Spiders that log in in different ways have different ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionId {
    /// The spiders that it belongs to.
    pub owner: SessionOwner,
    /// Its name among theirs.
    pub name: Arc<str>,
}

impl SessionOwner {
    /// Returns the name of the spider, or the one that several share.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Spider(spider) => spider.as_str(),
            Self::Shared(share) => share,
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            SessionOwner::Spider(spider) => write!(f, "{spider}/{}", self.name),
            SessionOwner::Shared(share) => write!(f, "shared {share}/{}", self.name),
        }
    }
}
