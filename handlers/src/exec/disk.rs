//! The size of a folder while programs write to it.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::getpid;

use super::processes::{Process, below};

/// Size in bytes of the blocks in which stat(2) counts a file's size on disk.
const BLOCK: u64 = 512;

/// Whether the contents of `folder` take more than `most` bytes of disk, or are more than `most_files` files and
/// folders. Links are not followed. Deleted files count as long as a process below this one has them open.
pub(super) fn has_more(folder: &Path, most: u64, most_files: usize) -> bool {
    has_more_with(folder, deleted_bytes(folder), most, most_files)
}

/// Whether `bytes` and the contents of `folder` take more than `most` bytes of disk, or these are more than `most_files`
/// files and folders. Links are not followed, and files that are deleted meanwhile do not count.
pub(crate) fn has_more_with(folder: &Path, mut bytes: u64, most: u64, most_files: usize) -> bool {
    let mut files = 0;
    let mut to_look_at = vec![folder.to_owned()];
    while let Some(folder) = to_look_at.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            files += 1;
            bytes = bytes.saturating_add(on_disk(&metadata));
            if files > most_files || bytes > most {
                return true;
            }
            if metadata.is_dir() {
                to_look_at.push(entry.path());
            }
        }
    }
    bytes > most
}

/// Returns the bytes that deleted files of `folder` take on disk, as far as processes below this one have them open.
fn deleted_bytes(folder: &Path) -> u64 {
    let Ok(folder) = folder.canonicalize() else { return 0 };
    let mut sizes = HashMap::new();
    for Process { pid, .. } in below(getpid()) {
        let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_pid()));
        for file in open.into_iter().flatten().flatten().map(|file| file.path()) {
            if !fs::read_link(&file).is_ok_and(|target| target.starts_with(&folder)) {
                continue;
            }
            // Leads to the file that is open, whatever its name leads to.
            let Ok(metadata) = fs::metadata(&file) else { continue };
            if metadata.nlink() == 0 {
                sizes.insert((metadata.dev(), metadata.ino()), on_disk(&metadata));
            }
        }
    }
    sizes.into_values().sum()
}

fn on_disk(metadata: &fs::Metadata) -> u64 {
    metadata.blocks().saturating_mul(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_bytes_count_wherever_they_are_below_the_folder_and_links_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("x"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", below.join("root")).unwrap();
        let has_more = |bytes, files| has_more(folder.path(), bytes, files);
        assert!(!has_more(1 << 20, 4) && has_more(1 << 20, 3) && has_more(90_000, 4));
        assert!(!super::has_more(Path::new("/nowhere"), 0, 0));
    }
}
