//! The contents of a program's folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Size in bytes of the blocks in which stat(2) counts a file's size on disk.
const BLOCK: u64 = 512;

/// Whether the contents of `folder` take more than `most` bytes of disk, or are more than `most_files` files and
/// folders. Links are not followed. Files deleted during the walk are not counted, nor are deleted files that are still
/// open.
pub(super) fn has_more(folder: &Path, most: u64, most_files: usize) -> bool {
    let (mut bytes, mut files) = (0_u64, 0);
    let mut to_look_at = vec![folder.to_owned()];
    while let Some(folder) = to_look_at.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            files += 1;
            bytes = bytes.saturating_add(metadata.blocks().saturating_mul(BLOCK));
            if files > most_files || bytes > most {
                return true;
            }
            if metadata.is_dir() {
                to_look_at.push(entry.path());
            }
        }
    }
    false
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
