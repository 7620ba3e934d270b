//! `[recovery]`: when something counts as lost.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::{self, minutes};

/// `[recovery]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Recovery {
    /// Time without a sign of life after which something counts as lost: a message, or a producer that reads
    /// sources. For a worker that holds a URL it is a quarter of that. All programs of a fleet need the same
    /// value.
    #[serde(with = "duration")]
    pub lost_after: Duration,
}

impl Default for Recovery {
    fn default() -> Self {
        Self { lost_after: minutes(1) }
    }
}

/// The section as sources write it. They are read over the defaults, so a value under the earlier name is always
/// someone's explicit choice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, with = "duration::optional")]
    lost_after: Option<Duration>,
    /// The earlier name.
    #[serde(default, with = "duration::optional")]
    patience: Option<Duration>,
}

impl From<Written> for Recovery {
    fn from(Written { lost_after, patience }: Written) -> Self {
        patience.or(lost_after).map_or_else(Self::default, |lost_after| Self { lost_after })
    }
}
