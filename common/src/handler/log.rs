//! What a handler logs.

use std::fmt;

use serde::{Serialize, Serializer};

/// How many bytes of a message are kept.
const MAX_MESSAGE: usize = 32 * 1024;

/// How grave an entry is. As a number 1, the gravest, to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::FromRepr)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum Level {
    /// Nothing can go on.
    Fatal = 1,
    /// What should never happen has happened.
    Panic = 2,
    /// Something failed.
    Error = 3,
    /// Something may be wrong.
    Warn = 4,
    /// Something of interest.
    Info = 5,
    /// Of interest to who looks for a mistake.
    Debug = 6,
    /// Each step.
    Trace = 7,
}

impl Level {
    /// The level with this number.
    pub fn of(number: u64) -> Option<Self> {
        u8::try_from(number).ok().and_then(Self::from_repr)
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.into())
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// What is said, of any number of lines, at most 32 KB. It is foreign text: whoever shows it makes it printable.
    pub message: String,
    /// How grave it is.
    pub level: Level,
}

impl LogEntry {
    /// An entry, its message cut to what is kept.
    pub fn new(level: Level, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE {
            let end = (0..=MAX_MESSAGE).rev().find(|at| message.is_char_boundary(*at));
            message.truncate(end.unwrap_or_default());
        }
        Self { message, level }
    }
}
