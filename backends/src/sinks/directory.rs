//! The folder that a sink writes to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;
use trawl_common::settings::path_below;

/// An existing folder. A restricted one is held open, and all its files are reached through that handle: whatever
/// happens to its path, nothing leads out of its root.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    path: PathBuf,
    held: Option<Arc<OwnedFd>>,
}

impl Directory {
    /// Opens the folder `path`, which is created if it does not exist; with `root`, it must be below that, without
    /// a symbolic link on the way.
    pub(super) fn new(path: &Path, root: Option<&Path>) -> io::Result<Self> {
        let Some(root) = root else {
            fs::create_dir_all(path)?;
            return Ok(Self { path: path.to_owned(), held: None });
        };
        let outside = || io::Error::new(ErrorKind::InvalidInput, format!("is not below {}", root.display()));
        let rest = path_below(path, root).ok_or_else(outside)?;
        fs::create_dir_all(root)?;
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        let mut held = openat(CWD, root, folder, Mode::empty())?;
        for name in &rest {
            match mkdirat(&held, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            held = openat(&held, name, folder | OFlags::NOFOLLOW, Mode::empty()).map_err(
                |error| match error {
                    Errno::NOTDIR | Errno::LOOP => io::Error::new(
                        ErrorKind::InvalidData,
                        format!("{} is no folder, or a symbolic link", name.display()),
                    ),
                    error => error.into(),
                },
            )?;
        }
        let path = format!("/proc/self/fd/{}", held.as_raw_fd()).into();
        Ok(Self { path, held: Some(Arc::new(held)) })
    }

    /// Returns its path, which is valid while this is held.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file in it with `options`. In a held folder no symbolic link is followed.
    pub(super) fn open(&self, name: &Path, options: &mut OpenOptions) -> io::Result<File> {
        if self.held.is_some() {
            options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        }
        options.open(self.path.join(name))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_leads_out_of_the_folder_that_a_directory_is_below() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("items"), place.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        let below = |path: &str| Directory::new(&root.join(path), Some(&root));
        let directory = below("shop/2026").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(outside.join("file"), root.join("shop/2026/link")).unwrap();
        for path in ["link", "link/a", "shop/../../outside", ".."] {
            assert!(below(path).is_err(), "{path}");
        }
        assert!(Directory::new(&outside, Some(&root)).is_err());
        let write =
            |name: &str| directory.open(Path::new(name), OpenOptions::new().create(true).append(true));
        assert!(write("link").is_err() && write("file").is_ok());
        assert!(!outside.join("file").exists() && root.join("shop/2026/file").exists());
        // Moved away, it is still the same folder.
        fs::rename(root.join("shop"), root.join("moved")).unwrap();
        symlink(&outside, root.join("shop")).unwrap();
        assert!(write("other").is_ok() && root.join("moved/2026/other").exists());
        assert!(
            Directory::new(&outside, None)
                .unwrap()
                .open(Path::new("x"), File::options().create(true).append(true))
                .is_ok()
        );
    }
}
