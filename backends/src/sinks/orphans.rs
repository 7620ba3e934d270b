//! Unfinished files whose process is gone: only those may be finished by another process.
//!
//! On one machine a lock shows that. If several machines share a folder, their file system may not support locks,
//! or each machine may see only its own. So the name of a growing file includes its machine,
//! `_<name>~<machine><random>.<ending>`, and its process updates its modification time every [`TOUCH_INTERVAL`]. A file
//! of another machine counts as orphaned if its time has not changed for [`ORPHAN_AGE`] on the observer's clock, so
//! clocks need not agree. The process that takes it over renames it first, so that the owner, if it is alive after all,
//! notices that the file is no longer its own, and writes its last data again, elsewhere.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use super::lock::{self, Lock};

/// The interval at which a process touches the files that it writes.
pub(super) const TOUCH_INTERVAL: Duration = Duration::from_secs(30);

/// Time without a change after which a file of another machine counts as orphaned.
pub(super) const ORPHAN_AGE: Duration = Duration::from_secs(180);

/// The id of this machine until its next boot.
static MACHINE: LazyLock<String> = LazyLock::new(|| {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let letters: String = boot.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    // Without a boot id every file counts as another machine's.
    if letters.len() == 8 { letters } else { format!("{:08x}", rand::random::<u32>()) }
});

/// Returns the id of this machine until its next boot: eight letters or digits.
pub(super) fn machine() -> &'static str {
    &MACHINE
}

/// Returns a new, unique name for a growing file of this process.
pub(super) fn growing_name(name: &str, ending: &str) -> String {
    format!("_{name}~{}{:08x}{ending}", *MACHINE, rand::random::<u32>())
}

/// A growing file, by its name. A file of an older version names no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Begun {
    pub(super) path: PathBuf,
    /// Its final name, without its ending.
    pub(super) name: String,
    machine: Option<String>,
}

impl Begun {
    fn new(path: PathBuf, ending: &str) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_prefix('_')?.strip_suffix(ending)?;
        let (name, tag) = name.rsplit_once('~').map_or((name, None), |(name, tag)| (name, Some(tag)));
        let machine = tag.and_then(|tag| tag.get(..8)).map(str::to_owned);
        Some(Self { name: name.to_owned(), machine, path })
    }

    /// Returns the growing files in a folder, including those whose process has died.
    pub(super) fn all(folder: &Path, ending: &str) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            found.extend(Self::new(entry?.path(), ending));
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

/// The state that one process keeps of the growing files in a folder.
#[derive(Default)]
pub(super) struct Orphans {
    /// The files of other machines, each with its modification time, and when that was first seen.
    seen: HashMap<PathBuf, (SystemTime, Instant)>,
    /// The files that this process began and no longer writes to.
    own: HashSet<PathBuf>,
    /// The files that cannot be read.
    odd: HashSet<PathBuf>,
}

impl Orphans {
    /// Notes a file that this process will not write to any more.
    pub(super) fn let_go(&mut self, path: PathBuf) {
        self.own.insert(path);
    }

    /// Notes a file with unexpected content, which is left as it is. Returns whether it was not noted before.
    pub(super) fn leave(&mut self, path: &Path) -> bool {
        self.odd.insert(path.to_owned())
    }

    /// Takes over a growing file whose process is gone, under a name of this process; fails with `ResourceBusy` if
    /// the process may be alive.
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
        now.duration_since(seen.1) >= ORPHAN_AGE
    }
}

/// Touches a growing file to show that its process is alive.
pub(super) fn beat(file: &File) -> io::Result<()> {
    file.set_modified(SystemTime::now())
}

/// Fails unless `path` still names `file`: another process may have taken it over as orphaned.
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
        Begun::new(folder.join(name), SPOOL).unwrap()
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
        assert_eq!(kind(ORPHAN_AGE), Some(ErrorKind::ResourceBusy), "it was changed since");
        assert_eq!(kind(ORPHAN_AGE + TOUCH_INTERVAL), Some(ErrorKind::ResourceBusy));
        assert!(check_own(&other.path, &writer).is_ok());

        let (own, file) = orphans.take_at(start + 2 * ORPHAN_AGE, &other, SPOOL).unwrap();
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
