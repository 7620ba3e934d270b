//! The end of a task, as the list of ended tasks keeps it.

use serde::{Deserialize, Serialize};

/// Maximum length of the part of a recipe that is kept, in bytes.
pub const MAX_RECIPE_SHOWN: usize = 200;

/// The end of a task, in an entry of the list of ended tasks. Task, crawl, spider, worker, time, class and error are
/// those of the entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Its final state: `done`, `failed`, `skipped` or `expired`.
    pub outcome: String,
    /// The time from its start to its end; unknown if it did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// The number of attempts, including the last.
    pub attempts: u32,
    /// The number of items that it gave.
    pub items: u64,
    /// The beginning of its recipe.
    pub recipe: String,
    /// The length of its recipe in bytes.
    pub recipe_bytes: usize,
}
