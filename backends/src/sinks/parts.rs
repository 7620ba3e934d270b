//! A folder of files, each of which gets its final name when it is finished.
//!
//! The name of a growing file begins with `_`, which programs that read whole folders skip.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use trawl_common::time::UnixMs;

/// Returns a unique name: `shop-20231114221320123-a1b2c3d4`.
pub(super) fn fresh_name(prefix: &str) -> String {
    let now: String = UnixMs::now().to_string().chars().filter(char::is_ascii_digit).collect();
    format!("{prefix}-{now}-{:08x}", rand::random::<u32>())
}

/// Gives a complete file its final name, durably.
pub(super) fn place(whole: &Path, name: &Path) -> io::Result<()> {
    File::open(whole)?.sync_all()?;
    fs::rename(whole, name)?;
    name.parent().map_or(Ok(()), sync)
}

/// Waits until the names in a folder are on the disk.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    // The parent of a bare name is empty.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}
