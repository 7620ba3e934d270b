//! Which of a request's failures its spider's program is given.

use serde::{Deserialize, Serialize};

/// Which failures of a request are given to its spider's program in place of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Failures {
    /// The one after which it would become a dead letter or be left out.
    Last,
    /// Each, before the request is tried again: the program says whether it is.
    Each,
}

impl Failures {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
