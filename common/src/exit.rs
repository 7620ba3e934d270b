//! Exit codes of every binary, in one place.

use std::process::ExitCode;

/// How a run ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    Ok,
    /// The run itself failed, or part of its input could not be read.
    Failed,
    /// Bad usage or settings, or a server that refuses what settings say.
    Usage,
    /// Finished, with URLs that failed.
    FailedUrls,
    /// The crawl was cancelled.
    Cancelled,
    /// A server that settings name is away or full: the same command may succeed later.
    Unavailable,
    /// A wait timed out.
    TimedOut,
    /// Ended by a signal with this number.
    Signal(u8),
}

impl Exit {
    /// The number that the process exits with.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::FailedUrls => 3,
            Self::Cancelled => 4,
            Self::Unavailable => 5,
            Self::TimedOut => 124,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
