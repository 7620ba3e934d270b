//! The error of a program: a message and an exit code.

use std::fmt;

use trawl_common::exit::Exit;
use trawl_common::ports::{self, ErrorKind};

/// The result of a program: an exit code, or a failure that is printed first.
pub type Outcome = Result<Exit, Fail>;

/// An error message of one line, and the exit code that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail {
    /// The exit code.
    pub exit: Exit,
    /// The problem, and the remedy if it is known.
    pub message: String,
}

impl Fail {
    /// An error of the caller, who asked for something impossible.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// A failure of the run.
    pub fn run(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, message: message.to_string() }
    }
}

impl From<ports::Error> for Fail {
    /// A server that refuses access is a matter of the settings. One that is away or full may be back later. Every
    /// other error is a failed run.
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
