//! The state of cron schedules.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::Result;
use crate::names::SpiderRef;
use crate::time::UnixMs;

/// Remembers up to when the schedule of each spider is done, and which ones are paused. Every call is durable when
/// it returns, and repeating it changes nothing more.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// Returns what is known of each spider. Entries that cannot be read are logged and left out.
    async fn list(&self) -> Result<BTreeMap<SpiderRef, ScheduleState>>;

    /// Notes that a spider's schedule is done up to `until`. An earlier instant changes nothing.
    async fn note(&self, spider: &SpiderRef, until: UnixMs) -> Result<()>;

    /// Pauses a schedule.
    async fn pause(&self, spider: &SpiderRef) -> Result<()>;

    /// Resumes a schedule with what comes after `now`. A schedule that is not paused stays as it is.
    async fn resume(&self, spider: &SpiderRef, now: UnixMs) -> Result<()>;
}

/// The state of one schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleState {
    /// Done up to this instant.
    Done(UnixMs),
    /// Paused.
    Paused,
}
