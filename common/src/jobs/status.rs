//! The status of a job, in one word.

use serde::{Deserialize, Serialize};

/// The status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum JobStatus {
    /// It waits in the queue.
    Pending,
    /// It is being fed, or its crawl is running.
    Running,
    /// Its crawl is finished.
    Finished,
    /// It could not be run.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl JobStatus {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether the job is over.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}
