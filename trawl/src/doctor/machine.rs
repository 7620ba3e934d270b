//! Checks of this machine: its limit of open files, and the room on its disks.

use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use rustix::fs::statvfs;
use trawl_common::finding::Finding;
use trawl_common::open_files;
use trawl_common::settings::{Settings, SinkSettings};

const SUBJECT: &str = "machine";

/// Number of open files below which many hosts at once are too many. A connection is a file.
const ENOUGH_FILES: u64 = 4_096;
/// Room on a disk below which a crawl may soon fill it.
const ENOUGH_ROOM: ByteSize = ByteSize::gb(1);

/// Returns what is to be said of this machine.
pub(super) fn examine(settings: &Settings) -> Vec<Finding> {
    std::iter::once(files()).chain(folders(settings).iter().map(|folder| room(folder))).collect()
}

fn files() -> Finding {
    let limit = open_files::limit();
    let what = format!("a process may have {limit} files open, connections among them");
    match limit < ENOUGH_FILES {
        true => Finding::warning(SUBJECT, what)
            .advise("raise the limit (`ulimit -n`, systemd: `LimitNOFILE`, Docker: `--ulimit nofile`)"),
        false => Finding::ok(SUBJECT, what),
    }
}

/// Returns the current folder, where state files are, and the existing folders that sinks write to, each disk once.
fn folders(settings: &Settings) -> Vec<PathBuf> {
    let paths = settings.sinks.iter().filter_map(SinkSettings::path);
    let written =
        paths.filter_map(|path| path.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned));
    let mut disks = Vec::new();
    let mut all = Vec::new();
    for folder in std::iter::once(PathBuf::from(".")).chain(written) {
        let disk = statvfs(&folder).map(|disk| disk.f_fsid).unwrap_or_default();
        if !disks.contains(&disk) {
            disks.push(disk);
            all.push(folder);
        }
    }
    all
}

fn room(folder: &Path) -> Finding {
    let shown = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let shown = shown.display();
    match statvfs(folder) {
        Err(error) => Finding::error(SUBJECT, format_args!("{shown}: {error}")),
        Ok(disk) => {
            let room = ByteSize(disk.f_bavail.saturating_mul(disk.f_frsize));
            let what = format!("{} are free below {shown}", room.display().si());
            match room < ENOUGH_ROOM {
                true => {
                    Finding::warning(SUBJECT, what).advise("a full disk delays sinks until there is room")
                }
                false => Finding::ok(SUBJECT, what),
            }
        }
    }
}
