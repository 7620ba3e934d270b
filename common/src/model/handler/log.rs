//! Log messages of a handler.

use serde::{Serialize, Serializer};

use crate::logs::LogLevel;
use crate::text::start_of;

/// Maximum length of a message, in bytes.
const MAX_MESSAGE: usize = 32 * 1024;

/// One message of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// The text, of any number of lines, at most 32 KB. It is foreign text and must be made printable before it is
    /// shown.
    pub message: String,
    /// The severity; a number in JSON.
    #[serde(serialize_with = "as_number")]
    pub level: LogLevel,
}

impl LogLine {
    /// Creates a line, with its message cut to the maximum length.
    pub fn new(level: LogLevel, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(start_of(&message, MAX_MESSAGE).len());
        Self { message, level }
    }
}

fn as_number<S: Serializer>(level: &LogLevel, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(level.number())
}
