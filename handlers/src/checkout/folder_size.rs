//! Watches the size of a version while it is fetched and set up.

use std::path::Path;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::exec::disk::has_more_with;

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
        if spawn_blocking(move || has_more_with(&folder, 0, MAX_BYTES, MAX_ENTRIES)).await.unwrap_or(false) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_is_measured_with_all_below_it_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("all")).unwrap();
        let is = |bytes, entries| has_more_with(folder.path(), 0, bytes, entries);
        assert!(!is(200_000, 3));
        assert!(is(90_000, 3));
        assert!(is(200_000, 2));
    }
}
