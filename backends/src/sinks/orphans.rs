//! Begun files whose process is gone: only those are another's to finish.
//!
//! On one machine a lock tells. Where several machines share a folder, their file system may know no locks, or each machine only
//! its own. So a growing file has its machine in its name, `_<name>~<machine><random>.<ending>`, and its process gives it a new time of
//! change every [`BEAT`]. Of another machine's it counts as orphaned when nothing has changed it for [`SILENCE`], by the clock of
//! whoever looks: clocks need not agree. Whoever takes it renames it first, so that its process, should it live after all, sees
//! that it is no longer its own, and writes once more what it has just written, elsewhere.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use super::lock::{self, Lock};

/// How often who writes to a file shows it.
pub(super) const BEAT: Duration = Duration::from_secs(30);

/// How long a file of another machine's stays as it is before it counts as orphaned.
pub(super) const SILENCE: Duration = Duration::from_secs(180);

/// What this machine is called until it is started again.
static MACHINE: LazyLock<String> = LazyLock::new(|| {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let letters: String = boot.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    // Without it every file is another machine's.
    if letters.len() == 8 { letters } else { format!("{:08x}", rand::random::<u32>()) }
});

/// The name of a growing file of this process, which no other has had.
pub(super) fn growing_name(name: &str, ending: &str) -> String {
    format!("_{name}~{}{:08x}{ending}", *MACHINE, rand::random::<u32>())
}

/// A growing file, by its name. One of an older version names no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Begun {
    pub(super) path: PathBuf,
    /// What it will be called, without its ending.
    pub(super) name: String,
    machine: Option<String>,
}

impl Begun {
    fn of(path: PathBuf, ending: &str) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_prefix('_')?.strip_suffix(ending)?;
        let (name, tag) = name.rsplit_once('~').map_or((name, None), |(name, tag)| (name, Some(tag)));
        let machine = tag.and_then(|tag| tag.get(..8)).map(str::to_owned);
        Some(Self { name: name.to_owned(), machine, path })
    }

    /// What is growing in a folder, or was when its process died.
    pub(super) fn all(folder: &Path, ending: &str) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            found.extend(Self::of(entry?.path(), ending));
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

/// What one process knows of the growing files in a folder.
#[derive(Default)]
pub(super) struct Orphans {
    /// Those of other machines, each with its time of change, and since when it has been that.
    seen: HashMap<PathBuf, (SystemTime, Instant)>,
    /// Those that this process began and does not write to any more.
    own: HashSet<PathBuf>,
    /// Those that are not understood.
    odd: HashSet<PathBuf>,
}

impl Orphans {
    /// Notes a file that this process will not write to any more.
    pub(super) fn let_go(&mut self, path: PathBuf) {
        self.own.insert(path);
    }

    /// Notes a file that is not what its name says, and is left as it is. Returns whether that is news.
    pub(super) fn leave(&mut self, path: &Path) -> bool {
        self.odd.insert(path.to_owned())
    }

    /// Takes a growing file whose process is gone, under a name of this process's; `ResourceBusy` if it may live.
    pub(super) fn take(&mut self, begun: &Begun, ending: &str) -> io::Result<(PathBuf, File)> {
        self.take_at(Instant::now(), begun, ending)
    }

    fn take_at(&mut self, now: Instant, begun: &Begun, ending: &str) -> io::Result<(PathBuf, File)> {
        let file = File::options().append(true).read(true).open(&begun.path)?;
        let lock = lock::take(&begun.path, &file)?;
        let is_local = begun.machine.as_ref().is_none_or(|machine| *machine == *MACHINE);
        if self.own.contains(&begun.path) || is_local && lock == Lock::Held {
            return Ok((begun.path.clone(), file));
        }
        if !self.is_silent(now, &begun.path, file.metadata()?.modified()?) {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "its process may live, on another machine"));
        }
        let own = begun.path.with_file_name(growing_name(&begun.name, ending));
        fs::rename(&begun.path, &own)?;
        Ok((own, file))
    }

    fn is_silent(&mut self, now: Instant, path: &Path, changed: SystemTime) -> bool {
        self.seen.retain(|path, _| path.exists());
        let seen = self.seen.entry(path.to_owned()).or_insert((changed, now));
        if seen.0 != changed {
            *seen = (changed, now);
        }
        now.duration_since(seen.1) >= SILENCE
    }
}

/// Shows that a growing file has a process.
pub(super) fn beat(file: &File) -> io::Result<()> {
    file.set_modified(SystemTime::now())
}

/// An error unless `file` is still what `path` names: another process may have taken it for orphaned.
pub(super) fn check_own(path: &Path, file: &File) -> io::Result<()> {
    let taken = "another process has taken it over, as this one was silent for too long";
    if lock::is_at(path, file)? { Ok(()) } else { Err(io::Error::other(taken)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPOOL: &str = ".spool";

    fn spool(folder: &Path, name: &str) -> Begun {
        fs::write(folder.join(name), "{}\n").unwrap();
        Begun::of(folder.join(name), SPOOL).unwrap()
    }

    #[test]
    fn what_another_machine_writes_is_taken_when_nothing_has_changed_it_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let other = spool(folder.path(), "_shop-1~0badcafe00000001.spool");
        let (mut orphans, start) = (Orphans::default(), Instant::now());
        let mut kind = |after| orphans.take_at(start + after, &other, SPOOL).err().map(|error| error.kind());
        assert_eq!(kind(Duration::ZERO), Some(ErrorKind::ResourceBusy));
        let writer = File::options().append(true).open(&other.path).unwrap();
        writer.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(kind(SILENCE), Some(ErrorKind::ResourceBusy), "it was changed since");
        assert_eq!(kind(SILENCE + BEAT), Some(ErrorKind::ResourceBusy));
        assert!(check_own(&other.path, &writer).is_ok());

        let (own, file) = orphans.take_at(start + 2 * SILENCE, &other, SPOOL).unwrap();
        assert!(check_own(&own, &file).is_ok() && !other.path.exists());
        assert!(check_own(&other.path, &writer).is_err(), "who wrote to it sees that it is gone");
        let taken = Begun::all(folder.path(), SPOOL).unwrap().remove(0);
        assert_eq!((taken.name.as_str(), &taken.path), ("shop-1", &own));
    }

    #[test]
    fn on_one_machine_the_lock_decides_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for name in [growing_name("shop-1", SPOOL), "_of-an-older-version.spool".to_owned()] {
            let local = spool(folder.path(), &name);
            let living = File::options().append(true).open(&local.path).unwrap();
            assert_eq!(lock::take(&local.path, &living).unwrap(), Lock::Held);
            let refused = Orphans::default().take(&local, SPOOL).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
            drop(living);
            assert_eq!(Orphans::default().take(&local, SPOOL).unwrap().0, local.path);
        }
    }
}
