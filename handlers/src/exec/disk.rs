//! What is in a program's folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::MAX_FILES;

/// How large the blocks are that a file's size on disk is counted in (stat(2)).
const BLOCK: u64 = 512;

/// Whether all that is in `folder` takes more than `most` bytes of disk, or is more than [`MAX_FILES`] files and folders. Links are
/// not followed. What is deleted meanwhile does not count, nor what is deleted and still open.
pub(super) fn has_more(folder: &Path, most: u64) -> bool {
    let (mut bytes, mut files) = (0_u64, 0);
    let mut to_look_at = vec![folder.to_owned()];
    while let Some(folder) = to_look_at.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            files += 1;
            bytes = bytes.saturating_add(metadata.blocks().saturating_mul(BLOCK));
            if files > MAX_FILES || bytes > most {
                return true;
            }
            if metadata.is_dir() {
                to_look_at.push(entry.path());
            }
        }
    }
    false
}
