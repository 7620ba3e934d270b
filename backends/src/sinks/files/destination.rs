//! The place of complete files.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use trawl_common::ports::FileContent;
use trawl_common::spider::with_mark;

use crate::sinks::directory::Directory;
use crate::sinks::parts;

/// Number of digits of a hash that tell two files of one name apart.
const MARK_DIGITS: usize = 16;

/// Size of the parts in which a file is read, in bytes.
pub(super) const PART: usize = 1 << 16;

/// A folder of complete files.
#[derive(Clone)]
pub(super) struct Destination {
    pub(super) to: PathBuf,
    /// The folder that it may not leave; `None` for no restriction.
    pub(super) below: Option<PathBuf>,
    /// Whether a file is on the disk when it is kept.
    pub(super) is_synced: bool,
}

impl Destination {
    /// Moves a complete file from `staged` to `path`, unless that has the same content, and returns where it is.
    pub(super) fn place(&self, staged: &Path, path: &str, content: &FileContent) -> io::Result<String> {
        let marks = [&content.sha256[..MARK_DIGITS.min(content.sha256.len())], &content.sha256];
        let marked = marks.into_iter().map(|mark| with_mark(path, mark));
        for path in std::iter::once(path.to_owned()).chain(marked) {
            let whole = self.to.join(&path);
            let folder = Directory::new(whole.parent().unwrap_or(&self.to), self.below.as_deref())?;
            let target = folder.path().join(whole.file_name().unwrap_or_default());
            match rename_new(staged, &target) {
                Ok(()) => {}
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                Err(_) if !has_content(&target, content)? => continue,
                Err(_) => fs::remove_file(staged)?,
            }
            if self.is_synced {
                parts::sync(folder.path())?;
            }
            return Ok(whole.to_string_lossy().into_owned());
        }
        let what =
            format!("{path} is there with other content, and so are all names with a part of its hash");
        Err(io::Error::new(ErrorKind::InvalidData, what))
    }
}

/// Renames a file, unless there is one of the new name.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Some network file systems cannot do that at once.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            File::create_new(to)?;
            fs::rename(from, to)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether there is a file of this content, and no link to one.
fn has_content(path: &Path, content: &FileContent) -> io::Result<bool> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_file() || about.len() != content.size {
        return Ok(false);
    }
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let mut part = vec![0; PART];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(HEXLOWER.encode(&hash.finalize()) == content.sha256),
            read => hash.update(&part[..read]),
        }
    }
}
