//! The size of a folder while programs write to it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Maximum size of a version in bytes, with all that its setup installs.
pub(super) const MAX_BYTES: u64 = 4 << 30;

/// Maximum number of files and folders of a version.
const MAX_ENTRIES: usize = 500_000;

/// Interval at which the size is looked at.
const INTERVAL: Duration = Duration::from_millis(500);

/// Waits until a folder has more than it may have.
pub(super) async fn exceeded(folder: Option<&Path>) {
    let Some(folder) = folder else { return std::future::pending().await };
    loop {
        sleep(INTERVAL).await;
        let folder = folder.to_owned();
        // It fails only when the process ends.
        if spawn_blocking(move || is_exceeded(folder, MAX_BYTES, MAX_ENTRIES)).await.unwrap_or(false) {
            return;
        }
    }
}

fn is_exceeded(folder: PathBuf, most_bytes: u64, most_entries: usize) -> bool {
    let (mut bytes, mut entries, mut folders) = (0, 0, vec![folder]);
    while let Some(folder) = folders.pop() {
        // What is removed meanwhile counts for nothing.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            entries += 1;
            bytes += metadata.blocks() * 512;
            if bytes > most_bytes || entries > most_entries {
                return true;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_measured_with_all_below_it_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("all")).unwrap();
        let is = |bytes, entries| is_exceeded(folder.path().to_owned(), bytes, entries);
        assert!(!is(200_000, 3));
        assert!(is(90_000, 3));
        assert!(is(200_000, 2));
    }
}
