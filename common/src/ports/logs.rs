//! The fleet's log: its most recent entries, in the order in which they were appended.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;

use super::Result;
use crate::logs::LogEntry;

/// Keeps the last entries of the log, up to the number and the size that settings allow. Nothing else depends on
/// it.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Appends entries in their order, and removes the oldest beyond the limits. After an error any of them may
    /// have been appended; a repeated call appends them again.
    async fn append(&self, entries: &[LogEntry]) -> Result<()>;

    /// Returns at most `most` entries before a position, the last first.
    async fn before(&self, place: LogPlace, most: usize) -> Result<LogPart>;

    /// Returns at most `most` entries after a position, in order. If the log was started anew since then and ends
    /// before that position, it is read from its beginning, so a follower misses nothing.
    async fn after(&self, place: LogPlace, most: usize) -> Result<LogPart>;
}

/// A position in the log: that of an entry, or one of its ends. As text it is `<number>-<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPlace(pub u64, pub u64);

impl LogPlace {
    /// The position before all entries.
    pub const BEGIN: Self = Self(0, 0);

    /// The position after all entries, present and future.
    pub const END: Self = Self(u64::MAX, u64::MAX);
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

impl FromStr for LogPlace {
    type Err = NoLogPlace;
    fn from_str(text: &str) -> std::result::Result<Self, NoLogPlace> {
        let (first, second) = text.split_once('-').ok_or(NoLogPlace)?;
        let number = |text: &str| text.parse().map_err(|_| NoLogPlace);
        Ok(Self(number(first)?, number(second)?))
    }
}

/// The error for a text that is no [`LogPlace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a place in the log is two numbers, as `1700000000000-0`")]
pub struct NoLogPlace;

/// An entry and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The position.
    pub place: LogPlace,
    /// The entry.
    pub entry: LogEntry,
}

/// A part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// Its entries; those that cannot be read are left out.
    pub lines: Vec<LogLine>,
    /// The position from which to continue.
    pub next: LogPlace,
    /// Whether there may be more entries beyond that now.
    pub has_more: bool,
}
