//! Downloads that are not complete. Each has a file named by this machine's id until its next boot and the download's
//! key, since what a power cut leaves of a file cannot be trusted, and a file beside it that says how to go on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tracing::debug;
use trawl_common::ports::Resume;
use trawl_common::web::url::Fingerprint;

use crate::sinks::directory::Directory;
use crate::sinks::lock::{self, Lock};
use crate::sinks::orphans;

/// The endings of a download, and of what is needed to go on with it.
const PART: &str = "part";
const RESUME: &str = "json";

/// Maximum size of what is needed to go on, in bytes.
const MAX_RESUME: u64 = 64 * 1024;

/// Age of a download without a change after which it is removed: no retry comes later.
const MAX_AGE: Duration = Duration::from_secs(25 * 3600);

/// Interval at which old downloads are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// The folder of incomplete downloads.
#[derive(Clone)]
pub(super) struct Staging {
    folder: Directory,
    swept: Arc<Mutex<Option<Instant>>>,
}

/// The file of an incomplete download, which nobody else writes to, and what is needed to go on with it.
pub(super) struct Staged {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) resume: Option<Resume>,
}

impl Staging {
    pub(super) fn new(folder: Directory) -> Self {
        Self { folder, swept: Arc::default() }
    }

    /// Opens the file of a download. Fails with `ResourceBusy` if another attempt writes to it.
    pub(super) fn open(&self, key: &Fingerprint) -> io::Result<Staged> {
        self.sweep_if_due();
        let name = PathBuf::from(format!("{}{key}.{PART}", orphans::machine()));
        let path = self.folder.path().join(&name);
        let file = self
            .folder
            .open(&name, OpenOptions::new().create(true).truncate(false).read(true).write(true))?;
        lock::take(&path, &file)?;
        let resume = read_resume(&path.with_extension(RESUME))?;
        Ok(Staged { file, path, resume })
    }

    fn sweep_if_due(&self) {
        let mut swept = self.swept.lock();
        if swept.is_none_or(|swept| swept.elapsed() > SWEEP_INTERVAL) {
            *swept = Some(Instant::now());
            if let Err(error) = sweep(self.folder.path(), SystemTime::now()) {
                debug!(%error, "old downloads are not removed");
            }
        }
    }
}

/// Notes what is needed to go on with the download at `path`, or that this is impossible.
pub(super) fn note_resume(path: &Path, resume: Option<&Resume>) -> io::Result<()> {
    let path = path.with_extension(RESUME);
    match resume {
        Some(resume) => fs::write(path, serde_json::to_vec(resume)?),
        None => remove(&path),
    }
}

/// Removes a file, which may be gone.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads what is needed to go on; `None` if there is nothing that can be read.
fn read_resume(path: &Path) -> io::Result<Option<Resume>> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_file() && about.len() <= MAX_RESUME => {
            Ok(serde_json::from_slice(&fs::read(path)?).ok())
        }
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes downloads that nobody has written to for long.
fn sweep(folder: &Path, now: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // What is gone by now was removed with its download.
        let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
        let is_old = |changed| now.duration_since(changed).is_ok_and(|age| age > MAX_AGE);
        if !about.is_file() || !is_old(about.modified()?) {
            continue;
        }
        match path.extension().and_then(|ending| ending.to_str()) {
            Some(PART) => {
                let file = File::open(&path)?;
                if lock::take(&path, &file).is_ok_and(|lock| lock == Lock::Held) {
                    remove(&path.with_extension(RESUME))?;
                    remove(&path)?;
                }
            }
            Some(RESUME) if !path.with_extension(PART).exists() => remove(&path)?,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_that_nobody_has_written_to_for_long_is_removed_and_no_other() {
        let place = tempfile::tempdir().unwrap();
        let old = |name: &str| {
            let path = place.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_modified(SystemTime::now() - MAX_AGE * 2).unwrap();
            (path, file)
        };
        let (gone, _) = old("1.part");
        let (gone_too, _) = old("1.json");
        let (alone, _) = old("2.json");
        let (held, file) = old("3.part");
        assert_eq!(lock::take(&held, &file).unwrap(), Lock::Held);
        let (foreign, _) = old("readme.txt");
        let young = place.path().join("4.part");
        fs::write(&young, "x").unwrap();
        sweep(place.path(), SystemTime::now()).unwrap();
        assert!(!gone.exists() && !gone_too.exists() && !alone.exists());
        assert!(held.exists() && foreign.exists() && young.exists());
    }
}
