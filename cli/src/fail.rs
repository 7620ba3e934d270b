//! Errors as a person at a shell meets them.

use std::fmt;

use trawl_common::exit::Exit;
use trawl_common::ports::{self, ErrorKind};

/// How a program ends: an exit code, or a failure that is told first.
pub type Outcome = Result<Exit, Fail>;

/// One line that says what is wrong, and the exit code that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong, and where it can be said, what to do.
    pub message: String,
}

impl Fail {
    /// The caller asked for something that cannot be.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// The run went wrong.
    pub fn run(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, message: message.to_string() }
    }
}

impl From<ports::Error> for Fail {
    /// A server that is away or refuses is a matter of settings; all else is the run's failure.
    fn from(error: ports::Error) -> Self {
        match error.kind {
            ErrorKind::Unavailable | ErrorKind::Full | ErrorKind::Refused => Self::usage(error),
            ErrorKind::Busy | ErrorKind::Stale | ErrorKind::Corrupt => Self::run(error),
        }
    }
}
