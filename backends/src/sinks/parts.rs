//! A folder of files, each of which gets its name when it is finished.
//!
//! What is still growing begins with `_`, which those that read whole folders leave out.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use trawl_common::time::UnixMs;

/// A name that no other file has: `shop-20231114221320123-a1b2c3d4`.
pub(super) fn fresh_name(prefix: &str) -> String {
    let now: String = UnixMs::now().to_string().chars().filter(char::is_ascii_digit).collect();
    format!("{prefix}-{now}-{:08x}", rand::random::<u32>())
}

/// The name of a file that is still growing, without `_` and its ending.
pub(super) fn name_of<'a>(path: &'a Path, ending: &str) -> Option<&'a str> {
    path.file_name()?.to_str()?.strip_prefix('_')?.strip_suffix(ending)
}

/// What is growing in a folder, or was when its process died.
pub(super) fn growing(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if name_of(&path, ending).is_some() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Gives a file that is whole its name, durably.
pub(super) fn place(whole: &Path, name: &Path) -> io::Result<()> {
    File::open(whole)?.sync_all()?;
    fs::rename(whole, name)?;
    match name.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
