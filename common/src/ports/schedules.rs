//! What is remembered of schedules.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::Result;
use crate::names::SpiderRef;
use crate::time::UnixMs;

/// Remembers up to when the schedule of each spider is done, and which ones people hold. Every call is durable when it returns, and
/// repeating it changes nothing more.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// What is known of each spider. What cannot be read is named in the log and left out.
    async fn list(&self) -> Result<BTreeMap<SpiderRef, ScheduleState>>;

    /// Notes that a spider's schedule is done up to `until`. What is done already stays so: an earlier instant changes nothing.
    async fn note(&self, spider: &SpiderRef, until: UnixMs) -> Result<()>;

    /// Holds a schedule.
    async fn pause(&self, spider: &SpiderRef) -> Result<()>;

    /// Lets a schedule go on with what comes after `now`. That of a spider that is not paused stays as it is.
    async fn resume(&self, spider: &SpiderRef, now: UnixMs) -> Result<()>;
}

/// What is known of one schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleState {
    /// It is done up to this instant.
    Done(UnixMs),
    /// It is held.
    Paused,
}
