//! The right to change a state file: one process at a time has it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sinks::lock;

/// A lock on `<state file>-lock`, free again when the process ends, however it ends.
///
/// The state file itself is SQLite's to lock: to close it once more would give up those locks.
pub(super) struct Claim {
    path: PathBuf,
    _file: File,
}

impl Claim {
    /// `ResourceBusy` if another process has it.
    pub(super) fn take(state: &Path) -> io::Result<Self> {
        let mut path = OsString::from(state);
        path.push("-lock");
        let path = PathBuf::from(path);
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        lock::take(&path, &file)?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for Claim {
    /// Whoever waits for the lock of a file that is gone finds that out, and is told that it is taken.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
