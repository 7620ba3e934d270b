//! The exclusive right to change a state file, whatever name is used for it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::sinks::lock;

/// Two locks that are released when the process ends, however it ends.
///
/// The one on `<state file>-lock` is taken first: older programs know it, and the file itself is not opened
/// without it, because closing the file would release the locks that SQLite has in this process. The one on the
/// file itself (by `flock`, which SQLite does not use) is for processes that use another name of the file.
pub(crate) struct FileLock {
    /// The state file, without symbolic links.
    pub(crate) state: PathBuf,
    /// Number of hard links of the state file.
    pub(crate) names: u64,
    beside: PathBuf,
    /// Closed after SQLite has closed the state file.
    _files: [File; 2],
}

/// The time that a killed process may take to be gone.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// The interval of checks whether it is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

impl FileLock {
    /// Locks a state file, which is created if there is none, readable only by its owner. Fails with
    /// `ResourceBusy` if another process has it and does not end soon.
    pub(crate) fn wait(state: &Path) -> io::Result<Self> {
        let state = without_links(state)?;
        let begun = Instant::now();
        loop {
            match Self::take(&state) {
                Err(error)
                    if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < LOCK_TIMEOUT =>
                {
                    sleep(CHECK_INTERVAL);
                }
                taken => return taken,
            }
        }
    }

    fn take(state: &Path) -> io::Result<Self> {
        let mut beside = OsString::from(state);
        beside.push("-lock");
        let beside = PathBuf::from(beside);
        let first = locked(&beside)?;
        // The files that SQLite creates beside it have the same mode.
        let file = locked(state).inspect_err(|_| drop(fs::remove_file(&beside)))?;
        let names = file.metadata()?.nlink();
        Ok(Self { state: state.to_owned(), names, beside, _files: [file, first] })
    }
}

fn locked(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    lock::take(path, &file)?;
    Ok(file)
}

/// Resolves the path of a file that may not exist yet.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    match (fs::canonicalize(path), path.file_name()) {
        (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            Ok(fs::canonicalize(folder.unwrap_or(Path::new(".")))?.join(name))
        }
        (found, _) => found,
    }
}

impl Drop for FileLock {
    /// A process that waits for the lock of a deleted file notices that, and gets the error that it is taken.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.beside);
    }
}
