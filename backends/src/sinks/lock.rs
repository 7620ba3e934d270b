//! Locks that give a file a single writer.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The result of locking a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// This process holds the lock, at least on this machine.
    Held,
    /// The file system does not support locks, so nobody can tell.
    Unknown,
}

/// Locks `file`, which was opened as `path`, for this process. The lock ends when the file is closed, or the
/// process has died. Fails with `ResourceBusy` if another process holds it.
pub(crate) fn take(path: &Path, file: &File) -> io::Result<Lock> {
    let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "someone else is writing to it");
    let lock = match file.try_lock() {
        Ok(()) => Lock::Held,
        Err(TryLockError::WouldBlock) => return Err(busy()),
        // Some network file systems do not support locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Lock::Unknown,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    // The previous holder may have renamed or removed it in the meantime.
    if is_at(path, file)? { Ok(lock) } else { Err(busy()) }
}

/// Returns whether `path` names `file`.
pub(crate) fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let here = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (here.dev(), here.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
