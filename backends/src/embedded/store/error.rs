//! Errors inside the store.

use rusqlite::ErrorCode;
use tracing::error;
use trawl_common::ports::{Error, ErrorKind};

/// The reason why a command failed: SQLite, or a rule of its port.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The port's contract forbids it.
    #[error(transparent)]
    Rule(#[from] Error),
}

/// The result of functions that run inside the store.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// Returns the error for a column with a value that this program would not have written.
    pub(crate) fn corrupt(what: impl std::fmt::Display) -> Self {
        Self::Rule(Error::new(ErrorKind::Corrupt, format_args!("the state file: {what}")))
    }
}

/// Skips a value that cannot be read, and logs it, so that everything else goes on.
pub(crate) fn unless_corrupt<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Fault::Rule(error)) if error.kind == ErrorKind::Corrupt => {
            error!(%error, "left alone until it is set right");
            Ok(None)
        }
        result => result.map(Some),
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Rule(error) => error,
            Fault::Sqlite(error) => Self::new(kind(&error), format_args!("the state file: {error}")),
        }
    }
}

fn kind(error: &rusqlite::Error) -> ErrorKind {
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => ErrorKind::Refused,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => ErrorKind::Corrupt,
        Some(_) => ErrorKind::Unavailable,
    }
}
