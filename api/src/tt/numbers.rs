//! The numbers of projects and workers: task_tracker has no names for them.

use serde::Deserialize;
use trawl_common::names::ProjectName;
use trawl_common::ports::{KeyDigest, Runner};
use trawl_common::web::url::Fingerprint;

/// Returns the number of a project, of 48 bits: each process of the API gives it the same.
pub(super) fn of_project(name: &ProjectName) -> u64 {
    let digest = Fingerprint::from_text(&format!("task_tracker project {name}"));
    digest.short().cast_unsigned() >> 16
}

/// Returns the number of a worker, of 48 bits, which its secret gives it.
pub(super) fn of_worker(key: &KeyDigest) -> u64 {
    let [a, b, c, d, e, f, ..] = *key.as_bytes();
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// A project, as drones and their programs name it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Project {
    Number(u64),
    Name(ProjectName),
}

impl Project {
    /// Returns the name of the project, if the runner has access to it.
    pub(super) fn of<'a>(&self, runner: &'a Runner) -> Option<&'a ProjectName> {
        runner.access.keys().find(|name| match self {
            Self::Number(number) => of_project(name) == *number,
            Self::Name(own) => own == *name,
        })
    }
}
