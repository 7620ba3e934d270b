//! The failures of a request that its spider's program is given.

use serde::{Deserialize, Serialize};

/// The failures of a request that its spider's program is given in place of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Failures {
    /// The last one, after which the request would become a dead letter or be skipped.
    Last,
    /// Each one, before the request is tried again: the program says whether it is.
    Each,
}

impl Failures {
    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
