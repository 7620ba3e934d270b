//! Blocking disk operations, and their errors.

use std::fmt::Display;
use std::io::{self, ErrorKind as IoErrorKind};
use std::path::Path;

use trawl_common::ports::{Error, ErrorKind, Result};

/// Runs an operation that waits for a disk on a thread where it blocks nothing else.
pub(super) async fn in_background<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| failed(path, &error)),
        Err(panic) => Err(Error::new(ErrorKind::Unavailable, describe(path, &panic))),
    }
}

/// Returns the error for a file, with advice for people.
pub(super) fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        IoErrorKind::ResourceBusy => {
            let way_out = "put {worker} into its path, so that each worker has a file of its own";
            Error::new(ErrorKind::Refused, format_args!("{}: {way_out}", describe(path, error)))
        }
        IoErrorKind::InvalidData => Error::new(ErrorKind::Refused, describe(path, error)),
        _ => Error::new(ErrorKind::Unavailable, describe(path, error)),
    }
}

fn describe(path: &Path, error: &dyn Display) -> String {
    format!("writing to {}: {error}", path.display())
}
