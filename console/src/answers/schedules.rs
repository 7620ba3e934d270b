//! Schedules.

use serde::Deserialize;

use super::Job;
use crate::shown::{Text, Time};

/// A page of schedules.
#[derive(Deserialize)]
pub(crate) struct Schedules {
    pub(crate) schedules: Vec<Scheduled>,
    pub(crate) next: Option<String>,
}

/// A spider's schedule and its current state.
#[derive(Deserialize)]
pub(crate) struct Scheduled {
    pub(crate) project: String,
    pub(crate) spider: String,
    pub(crate) schedule: Schedule,
    pub(crate) paused: bool,
    pub(crate) next: Option<Time>,
    pub(crate) last: Option<Last>,
}

/// The times at which a spider's crawls are submitted.
#[derive(Deserialize)]
pub(crate) struct Schedule {
    pub(crate) cron: Text,
    pub(crate) timezone: Text,
    pub(crate) missed: String,
    pub(crate) overlap: String,
}

/// The last job of a spider.
#[derive(Deserialize)]
pub(crate) struct Last {
    pub(crate) crawl: String,
    #[serde(flatten)]
    pub(crate) job: Job,
}

impl Schedule {
    /// The rules for missed and overlapping instants, if they differ from the defaults.
    pub(crate) fn rules(&self) -> Vec<&'static str> {
        let missed = (self.missed == "run").then_some("made up for when no worker was there");
        let overlap = (self.overlap == "queue").then_some("queued while the last one runs");
        missed.into_iter().chain(overlap).collect()
    }
}
