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
    /// A server that refuses is a matter of settings, one that is away or full may be back later; all else is the run's failure.
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
    fn a_server_that_may_be_back_later_is_told_from_one_that_refuses_and_from_a_run_that_went_wrong() {
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
