//! What a handler logs.

use serde::{Serialize, Serializer};

use crate::logs::LogLevel;
use crate::text::start_of;

/// How many bytes of a message are kept.
const MAX_MESSAGE: usize = 32 * 1024;

/// One message of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// What is said, of any number of lines, at most 32 KB. It is foreign text: whoever shows it makes it printable.
    pub message: String,
    /// How grave it is; as a number in JSON.
    #[serde(serialize_with = "as_number")]
    pub level: LogLevel,
}

impl LogLine {
    /// A line, its message cut to what is kept.
    pub fn new(level: LogLevel, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(start_of(&message, MAX_MESSAGE).len());
        Self { message, level }
    }
}

fn as_number<S: Serializer>(level: &LogLevel, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(level.number())
}
