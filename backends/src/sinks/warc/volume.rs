//! One WARC file and its index, from the first record to their names.
//!
//! The index grows beside the file, and a capture is in it once its records are whole: what a crash left of the file
//! beyond the last capture of the index was never acknowledged, and is cut off.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tracing::{info, warn};

use super::super::append::Appender;
use super::super::{lock, parts};
use super::cdxj::{self, Entry};
use super::record::{self, Capture};

const FILE: &str = ".warc.gz";
const INDEX: &str = ".cdxj";

/// A file that is written, by this process alone: it holds the lock of the index.
pub(super) struct Volume {
    names: Names,
    info: String,
    file: Appender,
    index: Appender,
}

/// What the files are called, while they grow and then.
struct Names {
    folder: PathBuf,
    name: String,
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
    /// A new file in this folder.
    pub(super) fn begin(folder: &Path, prefix: &str) -> io::Result<Self> {
        let names = Names { folder: folder.to_owned(), name: parts::fresh_name(prefix) };
        let create = |ending| OpenOptions::new().create_new(true).append(true).open(names.growing(ending));
        let index = create(INDEX)?;
        lock::take(&names.growing(INDEX), &index)?;
        let mut file = Appender::new(create(FILE)?)?;
        let (info, head) = record::info(&format!("{}{FILE}", names.name))?;
        if let Err(error) = file.append(&head) {
            // There may be room for a name where there is none for a record.
            fs::remove_file(names.growing(FILE)).and_then(|()| fs::remove_file(names.growing(INDEX)))?;
            return Err(error);
        }
        Ok(Self { info, file, index: Appender::new(index)?, names })
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    /// Appends the records of these captures, and then their lines in the index: all or nothing.
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
            let entry = Entry::of(capture, &records, offset, &filename);
            lines.extend(cdxj::line(capture, &entry)?);
        }
        self.index.append(&lines)
    }

    /// Writes the sorted index, and gives both their names.
    pub(super) fn finish(&self) -> io::Result<()> {
        finish(&self.names)
    }
}

/// May be repeated, wherever it ended.
fn finish(names: &Names) -> io::Result<()> {
    let mut lines: Vec<String> =
        fs::read_to_string(names.growing(INDEX))?.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        fs::remove_file(names.growing(FILE))?;
        return fs::remove_file(names.growing(INDEX));
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
    fs::remove_file(names.growing(INDEX))
}

/// Finishes the files of processes that are no more. What cannot be finished is left as it is, and the log says why.
pub(super) fn finish_leftovers(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for index in parts::growing(folder, INDEX)? {
        let Some(name) = parts::name_of(&index, INDEX) else { continue };
        let names = Names { folder: folder.to_owned(), name: name.to_owned() };
        match finish_leftover(&names) {
            Ok(()) => {
                info!(file = %names.finished(FILE).display(), "finished what another process had begun")
            }
            Err(error) if matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::NotFound) => {}
            Err(error) => warn!(file = %index.display(), %error, "not finished; it is left as it is"),
        }
    }
    Ok(())
}

fn finish_leftover(names: &Names) -> io::Result<()> {
    let (path, file) = (names.growing(INDEX), names.growing(FILE));
    let index = OpenOptions::new().append(true).open(&path)?;
    lock::take(&path, &index)?;
    let file = match OpenOptions::new().append(true).open(file) {
        Ok(file) => file,
        // Begun and no more, or finished but for this.
        Err(error) if error.kind() == ErrorKind::NotFound => return fs::remove_file(path),
        Err(error) => return Err(error),
    };
    let (lines, records) = cdxj::whole(&fs::read(&path)?, file.metadata()?.len())?;
    index.set_len(lines)?;
    file.set_len(records)?;
    finish(names)
}
