//! A small disk that can be filled up, or made read-only.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A file system of its own, in memory. Unmounted when dropped.
pub struct Disk {
    folder: TempDir,
}

impl Disk {
    /// Mounts a disk of `kib` KiB, as root or with `sudo`.
    ///
    /// # Errors
    /// If mounting is not allowed.
    pub fn mount(kib: u64) -> io::Result<Self> {
        let folder = TempDir::with_prefix("trawl-disk-")?;
        // The user that runs the tests may write to it.
        let options = format!("size={kib}k,mode=0777");
        as_root("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", &folder.path().to_string_lossy()])?;
        Ok(Self { folder })
    }

    /// Returns where it is mounted.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Changes its size to `kib` KiB.
    ///
    /// # Errors
    /// If it cannot be remounted.
    pub fn resize(&self, kib: u64) -> io::Result<()> {
        self.remount(&format!("size={kib}k"))
    }

    /// Makes it read-only, for root too.
    ///
    /// # Errors
    /// If it cannot be remounted, because a file on it is still open for writing.
    pub fn read_only(&self) -> io::Result<()> {
        self.remount("ro")
    }

    /// Makes it writable again.
    ///
    /// # Errors
    /// If it cannot be remounted.
    pub fn writable(&self) -> io::Result<()> {
        self.remount("rw")
    }

    fn remount(&self, options: &str) -> io::Result<()> {
        let path: PathBuf = self.path().to_owned();
        as_root("mount", &["-o", &format!("remount,{options}"), &path.to_string_lossy()])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, in case a process still has a file open there.
        let _ = as_root("umount", &["-l", &self.path().to_string_lossy()]);
    }
}

fn as_root(program: &str, words: &[&str]) -> io::Result<()> {
    let direct = run(Command::new(program).args(words));
    let Err(error) = direct else { return Ok(()) };
    run(Command::new("sudo").args(["-n", program]).args(words)).map_err(|_| error)
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {}: needs root, or sudo without a password", message.trim())))
}
