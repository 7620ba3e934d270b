//! `redis.dedup`: the form in which a spider's dedup is stored.

use serde::{Deserialize, Serialize};

/// The form of the set of URLs that a spider has seen. It is fixed for every program when the set is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dedup {
    /// One set of URLs: some 120 bytes for each.
    #[default]
    Plain,
    /// Sets of 64-bit integers, the starts of the URLs' fingerprints: some 10 bytes for each. The
    /// URLs themselves cannot be listed.
    Packed,
}
