//! The right to change a state file: one process at a time has it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::sinks::lock;

/// A lock on `<state file>-lock`, free again when the process ends, however it ends.
///
/// The state file itself is SQLite's to lock: to close it once more would give up those locks.
pub(super) struct FileLock {
    path: PathBuf,
    _file: File,
}

/// A process that was killed may take so long to be gone.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// How often to look whether it is.
const LOOK: Duration = Duration::from_millis(20);

impl FileLock {
    /// `ResourceBusy` if another process has it, and does not end at once.
    pub(super) fn wait(state: &Path) -> io::Result<Self> {
        let begun = Instant::now();
        loop {
            match Self::take(state) {
                Err(error)
                    if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < LOCK_TIMEOUT =>
                {
                    sleep(LOOK);
                }
                taken => return taken,
            }
        }
    }

    fn take(state: &Path) -> io::Result<Self> {
        let mut path = OsString::from(state);
        path.push("-lock");
        let path = PathBuf::from(path);
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        lock::take(&path, &file)?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for FileLock {
    /// Whoever waits for the lock of a file that is gone finds that out, and gets the error that it is taken.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
