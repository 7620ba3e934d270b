//! Severity levels of entries: seven, as handlers number them.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The severity of an entry of the log, the most severe first. Users' own programs use the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum LogLevel {
    /// Nothing works any more.
    Fatal = 1,
    /// A program crashed.
    Panic = 2,
    /// Something failed for good.
    Error = 3,
    /// Something failed, and is tried again or left out.
    Warn = 4,
    /// Something began or ended normally.
    Info = 5,
    /// A step, for debugging.
    Debug = 6,
    /// Every step.
    Trace = 7,
}

impl LogLevel {
    /// Every level, the most severe first.
    pub const ALL: [Self; 7] =
        [Self::Fatal, Self::Panic, Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// Returns the name in commands, settings and JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the number that handlers use.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the level of a number, if there is one.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLevel;
    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or(UnknownLevel)
    }
}

/// The error for a text that names no [`LogLevel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a level is `fatal`, `panic`, `error`, `warn`, `info`, `debug` or `trace`")]
pub struct UnknownLevel;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_names_and_numbers_that_handlers_use() {
        let shown = LogLevel::ALL.map(|level| format!("{} {level}", level.number()));
        assert_eq!(shown.join(", "), "1 fatal, 2 panic, 3 error, 4 warn, 5 info, 6 debug, 7 trace");
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::of_number(level.number()), Some(level));
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        assert_eq!((LogLevel::of_number(0), LogLevel::of_number(8)), (None, None));
        assert!("loud".parse::<LogLevel>().is_err() && LogLevel::Fatal < LogLevel::Trace);
    }
}
