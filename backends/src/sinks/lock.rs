//! One writer for a file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Takes `file`, which was opened as `path`, for this process; it is free again when the file is closed, or the process
/// has died. `ResourceBusy` if another holds it.
pub(super) fn take(path: &Path, file: &File) -> io::Result<()> {
    let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "someone else is writing to it");
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(busy()),
        // Some network file systems know no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Whoever held it may have renamed or removed it while this process waited for nothing.
    let (here, there) = (file.metadata()?, fs::metadata(path));
    let same = |there: fs::Metadata| (there.dev(), there.ino()) == (here.dev(), here.ino());
    if there.is_ok_and(same) { Ok(()) } else { Err(busy()) }
}
