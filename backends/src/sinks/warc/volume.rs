//! One WARC file and its index, from the first record to their final names.
//!
//! The index grows beside the file, and a capture is added to it once its records are complete. After a crash, the
//! part of the file beyond the last capture of the index was never acknowledged, and is cut off.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tracing::{info, warn};

use super::super::append::Appender;
use super::super::orphans::{self, Begun, Orphans};
use super::super::{lock, parts};
use super::cdxj::{self, IndexEntry};
use super::record::{self, Capture};

const FILE: &str = ".warc.gz";
const INDEX: &str = ".cdxj";

/// A file that is being written, by this process alone: it holds the lock of the index.
pub(super) struct Volume {
    names: Names,
    info: String,
    file: Appender,
    index: Appender,
    sync: bool,
}

/// The names of the files, while they grow and finally.
struct Names {
    folder: PathBuf,
    name: String,
    /// The growing index: its name shows the owner of both files.
    index: PathBuf,
}

impl Names {
    fn growing(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("_{}{ending}", self.name))
    }

    fn finished(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }
}

impl Volume {
    /// Creates a new file in this folder. With `sync` each append is on the disk before it returns.
    pub(super) fn begin(folder: &Path, prefix: &str, sync: bool) -> io::Result<Self> {
        let name = parts::fresh_name(prefix);
        let index = folder.join(orphans::growing_name(&name, INDEX));
        let names = Names { folder: folder.to_owned(), name, index };
        let create = |path| OpenOptions::new().create_new(true).append(true).open(path);
        let index = create(names.index.clone())?;
        lock::take(&names.index, &index)?;
        let mut file = Appender::new(create(names.growing(FILE))?)?;
        let (info, head) = record::info(&format!("{}{FILE}", names.name))?;
        if let Err(error) = file.append(&head) {
            // There may be space for a name but not for a record.
            fs::remove_file(names.growing(FILE)).and_then(|()| fs::remove_file(&names.index))?;
            return Err(error);
        }
        if sync {
            parts::sync(folder)?;
        }
        Ok(Self { info, file, index: Appender::new(index)?, sync, names })
    }

    /// Returns its length in bytes.
    pub(super) fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    /// Appends the records of these captures, and then their lines in the index: all or nothing, and with `sync`
    /// durably.
    pub(super) fn append(&mut self, captures: &[Capture]) -> io::Result<()> {
        let before = self.file.len()?;
        self.write(captures).inspect_err(|_| self.file.cut(before))
    }

    fn write(&mut self, captures: &[Capture]) -> io::Result<()> {
        let filename = format!("{}{FILE}", self.names.name);
        let mut lines = Vec::new();
        for capture in captures {
            let records = capture.records(&self.info)?;
            self.file.append(&records.before)?;
            let offset = self.file.len()?;
            self.file.append(&records.response)?;
            let entry = IndexEntry::new(capture, &records, offset, &filename);
            lines.extend(cdxj::line(capture, &entry)?);
        }
        if !self.sync {
            return self.index.append(&lines);
        }
        // The records first: the index shows which part of the file is complete.
        self.file.sync()?;
        let before = self.index.len()?;
        self.index.append(&lines)?;
        self.index.sync().inspect_err(|_| self.index.cut(before))
    }

    /// Shows that the process of the files is alive.
    pub(super) fn beat(&self) -> io::Result<()> {
        orphans::beat(self.index.file())
    }

    /// Fails if another process has taken the files over.
    pub(super) fn check_own(&self) -> io::Result<()> {
        orphans::check_own(&self.names.index, self.index.file())
    }

    /// Writes the sorted index, and gives both files their final names.
    pub(super) fn finish(&self) -> io::Result<()> {
        finish(&self.names)
    }
}

/// Finishes the files; may be repeated after any interruption.
fn finish(names: &Names) -> io::Result<()> {
    let mut lines: Vec<String> = fs::read_to_string(&names.index)?.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        fs::remove_file(names.growing(FILE))?;
        return fs::remove_file(&names.index);
    }
    lines.sort_unstable();
    let sorted = names.growing(".sorted");
    let mut output = io::BufWriter::new(File::create(&sorted)?);
    for line in lines {
        writeln!(output, "{line}")?;
    }
    output.into_inner().map_err(io::IntoInnerError::into_error)?;
    parts::place(&sorted, &names.finished(INDEX))?;
    match parts::place(&names.growing(FILE), &names.finished(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound && names.finished(FILE).exists() => {}
        placed => placed?,
    }
    fs::remove_file(&names.index)
}

/// Finishes the files of dead processes. Files that cannot be finished are left as they are, and the reason is
/// logged.
pub(super) fn finish_leftovers(folder: &Path, orphans: &mut Orphans) -> io::Result<()> {
    for index in Begun::all(folder, INDEX)? {
        match finish_leftover(folder, &index, orphans) {
            Ok(()) => info!(file = index.name, "finished what another process had begun"),
            Err(error) if matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::NotFound) => {}
            Err(error) => {
                if orphans.leave(&index.path) {
                    warn!(file = %index.path.display(), %error, "not finished; it is left as it is");
                }
            }
        }
    }
    Ok(())
}

fn finish_leftover(folder: &Path, begun: &Begun, orphans: &mut Orphans) -> io::Result<()> {
    // Locked while the file is open.
    let (path, index) = orphans.take(begun, INDEX)?;
    let names = Names { folder: folder.to_owned(), name: begun.name.clone(), index: path };
    let file = match OpenOptions::new().append(true).open(names.growing(FILE)) {
        Ok(file) => file,
        // It was only begun, or is finished except for this.
        Err(error) if error.kind() == ErrorKind::NotFound => return fs::remove_file(&names.index),
        Err(error) => return Err(error),
    };
    let (lines, records) = cdxj::whole(&fs::read(&names.index)?, file.metadata()?.len())?;
    index.set_len(lines)?;
    file.set_len(records)?;
    finish(&names)
}
