//! The file with the key of a runner.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use trawl_common::ports::RunnerKey;

/// A file that holds the key of a runner, readable only by its owner.
pub struct KeyFile;

/// The reason why there is no key.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", .path.display())]
pub struct NoKeyFile {
    path: PathBuf,
    why: String,
}

impl KeyFile {
    /// Reads the key in the file at `path`, or makes one if there is no such file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or made, if others may read it, or if it holds no key.
    pub fn open(path: &Path) -> Result<RunnerKey, NoKeyFile> {
        let failed = |why: String| NoKeyFile { path: path.to_owned(), why };
        let made = make(path);
        if let Err(error) = &made
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(failed(format!("the key cannot be written: {error}")));
        }
        if let Ok(key) = made {
            return Ok(key);
        }
        check_mode(path).map_err(&failed)?;
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let none = "holds no key: remove it, and the runner asks for access with a new one";
        RunnerKey::read(&text).ok_or_else(|| failed(none.to_owned()))
    }
}

/// Makes a key, whole or not at all: a process that dies meanwhile leaves no half of one.
fn make(path: &Path) -> io::Result<RunnerKey> {
    if path.exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let key = RunnerKey::generate();
    let beside = folder.join(format!(".runner-{:08x}", rand::random::<u32>()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut file| {
        writeln!(file, "{}", key.reveal())?;
        file.sync_all()
    });
    // A link fails if another process was faster.
    let placed = written.and_then(|()| std::fs::hard_link(&beside, path));
    let _ = std::fs::remove_file(&beside);
    placed.map(|()| key)
}

/// Checks that only the owner may read the file.
#[cfg(unix)]
fn check_mode(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err("others may read the key of the runner: chmod 600".to_owned()),
    }
}

#[cfg(not(unix))]
fn check_mode(_: &Path) -> Result<(), String> {
    Ok(())
}
