//! The fleet's log: entries in the order in which they were appended, the last ones alone.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;

use super::Result;
use crate::logs::LogEntry;

/// Keeps the last entries of the log: as many, and as many bytes of them, as settings allow. Nothing else depends on it.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Appends entries in their order, and takes out the oldest ones that are too many. After an error any of them may be there; a
    /// call that is repeated appends them once more.
    async fn append(&self, entries: &[LogEntry]) -> Result<()>;

    /// At most `most` entries before a place, the last first.
    async fn before(&self, place: LogPlace, most: usize) -> Result<LogPart>;

    /// At most `most` entries after a place, the first first. If the log was begun anew since, and ends before that place, it is read
    /// from its beginning: who follows it misses nothing.
    async fn after(&self, place: LogPlace, most: usize) -> Result<LogPart>;
}

/// A place in the log: that of an entry, or one of its ends. As text it is `<number>-<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPlace(pub u64, pub u64);

impl LogPlace {
    /// Before all entries.
    pub const BEGIN: Self = Self(0, 0);

    /// After all entries that will ever be.
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

/// A text that is no [`LogPlace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a place in the log is two numbers, as `1700000000000-0`")]
pub struct NoLogPlace;

/// An entry, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Where.
    pub place: LogPlace,
    /// The entry.
    pub entry: LogEntry,
}

/// A part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// Its entries; those that cannot be read are left out.
    pub lines: Vec<LogLine>,
    /// Where the next part begins.
    pub next: LogPlace,
    /// Whether there may be more beyond that now.
    pub has_more: bool,
}
