//! Errors of a program: a message and an exit code.

use std::fmt;

use trawl_common::exit::Exit;
use trawl_common::ports::{self, ErrorKind};

/// How a program ends: with an exit code, or with a failure that is printed first.
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
    /// A server that refuses has to be dealt with in the settings. One that is away or full may be back later. All else is a failed run.
    fn from(error: ports::Error) -> Self {
        match error.kind {
            ErrorKind::Unavailable | ErrorKind::Full => {
                Self { exit: Exit::Unavailable, message: error.to_string() }
            }
            ErrorKind::Refused => Self::usage(error),
            ErrorKind::Busy | ErrorKind::Stale | ErrorKind::Corrupt => Self::run(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_refusals_and_failed_runs_have_exit_codes_of_their_own() {
        for (kind, exit) in [
            (ErrorKind::Unavailable, Exit::Unavailable),
            (ErrorKind::Full, Exit::Unavailable),
            (ErrorKind::Refused, Exit::Usage),
            (ErrorKind::Busy, Exit::Failed),
            (ErrorKind::Stale, Exit::Failed),
            (ErrorKind::Corrupt, Exit::Failed),
        ] {
            assert_eq!(Fail::from(ports::Error::new(kind, "redis")).exit, exit, "{kind:?}");
        }
    }
}
