//! A machine whose clock is wrong: a process under `libfaketime`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A machine is at most so many seconds off: with a minute a program refuses to start.
const MOST: u64 = 45;

/// A clock that can be set while a process goes by it.
#[derive(Clone, Debug)]
pub struct Clock {
    library: PathBuf,
    /// Says by how many seconds it is off.
    file: PathBuf,
}

impl Clock {
    /// A clock that is right, kept in `folder`.
    ///
    /// # Errors
    /// When the library is not there, or the folder cannot be written to.
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

    /// Sets it to less than a minute off.
    pub(crate) fn set(&self, pick: u64) -> io::Result<()> {
        self.set_off(i64::try_from(pick % (2 * MOST + 1)).unwrap_or_default() - MOST.cast_signed())
    }

    /// Sets it so many seconds off.
    ///
    /// # Errors
    /// When its file cannot be written.
    pub fn set_off(&self, off: i64) -> io::Result<()> {
        // Replaced as a whole: it is read at any time.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{off:+}"))?;
        fs::rename(new, &self.file)
    }

    /// What a process needs to go by it.
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
