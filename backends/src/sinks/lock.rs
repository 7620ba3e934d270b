//! One writer for a file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether a file is this process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// It is, for all of this machine at least.
    Held,
    /// Its file system knows no locks, so nobody can tell.
    Unknown,
}

/// Takes `file`, which was opened as `path`, for this process; it is free again when the file is closed, or the process
/// has died. `ResourceBusy` if another holds it.
pub(crate) fn take(path: &Path, file: &File) -> io::Result<Lock> {
    let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "someone else is writing to it");
    let lock = match file.try_lock() {
        Ok(()) => Lock::Held,
        Err(TryLockError::WouldBlock) => return Err(busy()),
        // Some network file systems know no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Lock::Unknown,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    // Whoever held it may have renamed or removed it while this process waited for nothing.
    if is_at(path, file)? { Ok(lock) } else { Err(busy()) }
}

/// Whether `path` names `file`.
pub(crate) fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let here = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (here.dev(), here.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
