//! The wrong clock of a machine: a process under `libfaketime`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum offset of a clock in seconds: with a minute a program refuses to start.
const MAX_OFFSET_SECONDS: u64 = 45;

/// A clock that can be set while a process uses it.
#[derive(Clone, Debug)]
pub struct Clock {
    library: PathBuf,
    /// The file with its offset in seconds.
    file: PathBuf,
}

impl Clock {
    /// Returns a clock that is right, kept in `folder`.
    ///
    /// # Errors
    /// If the library is missing, or the folder cannot be written to.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let folders = fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path());
        let library =
            folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|file| file.exists());
        let library =
            library.ok_or_else(|| io::Error::other("libfaketime is missing: scripts/servers install"))?;
        let clock = Self { library, file: folder.join("clock") };
        fs::write(&clock.file, "+0")?;
        Ok(clock)
    }

    /// Sets it to an offset of less than a minute, chosen by `pick`.
    pub(crate) fn set(&self, pick: u64) -> io::Result<()> {
        self.set_off(
            i64::try_from(pick % (2 * MAX_OFFSET_SECONDS + 1)).unwrap_or_default()
                - MAX_OFFSET_SECONDS.cast_signed(),
        )
    }

    /// Sets its offset in seconds.
    ///
    /// # Errors
    /// If its file cannot be written.
    pub fn set_off(&self, off: i64) -> io::Result<()> {
        // Replaced as a whole: processes may read it at any time.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{off:+}"))?;
        fs::rename(new, &self.file)
    }

    /// Returns the environment variables of a process that uses this clock.
    pub fn env(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("LD_PRELOAD", self.library.clone()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone()),
            // Seconds after which the file is read again.
            ("FAKETIME_CACHE_DURATION", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }
}
