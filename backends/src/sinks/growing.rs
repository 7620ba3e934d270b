//! A file that only grows, by whole records.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use trawl_common::settings::Compress;

use super::append::Appender;
use super::directory::Directory;
use super::own::mend;
use super::whole::{Records, pack};
use super::{lock, parts};

/// How a growing file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// The kind of records that are appended.
    pub(super) records: Records,
    /// The head of each file.
    pub(super) head: Vec<u8>,
    /// How it is compressed: each append is one gzip member or zstd frame.
    pub(super) compress: Compress,
    /// Maximum size of a file in bytes, unless a single record is larger; then it is set aside and a new one begun.
    pub(super) rotate: Option<u64>,
    /// Whether each append is synced to the disk before it returns.
    pub(super) sync: bool,
}

/// A file that holds whole records only, and that nobody else appends to.
///
/// Each append is one write to a file, so a killed process leaves at most one partial record at the end. Opening the
/// file again cuts it off: its page was not yet acknowledged, and is written again.
pub(super) struct Growing {
    folder: Directory,
    path: PathBuf,
    form: Form,
    file: Appender,
    /// Whether the file has its head.
    begun: bool,
    /// Whether the file has more than its head.
    filled: bool,
    /// The number of the last file that was set aside.
    aside: u32,
}

impl Growing {
    /// Opens the file `name` in `folder` for appending. Fails with `ResourceBusy` if another process writes to it.
    pub(super) fn open(folder: Directory, name: &Path, form: Form) -> io::Result<Self> {
        let path = folder.path().join(name);
        let (file, begun) = open_whole(&folder, &path, &form)?;
        let mut growing = Self { folder, path, form, file, begun, filled: false, aside: 0 };
        growing.begin()?;
        Ok(growing)
    }

    /// Returns the path and the file.
    pub(super) fn place(&self) -> (&Path, &File) {
        (&self.path, self.file.file())
    }

    /// Returns the size of the file in bytes.
    pub(super) fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    /// Appends these records, synced to the disk if the form says so: all or none of them, unless the file reaches its
    /// maximum size in between.
    pub(super) fn append(&mut self, records: &[Vec<u8>]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let packed = pack(records.concat(), self.form.compress)?;
        let most = self.form.rotate.filter(|_| self.file.is_regular()).unwrap_or(u64::MAX);
        let fits = |len: u64| len + packed.len() as u64 <= most;
        if !fits(self.len()?) {
            if records.len() > 1 {
                let (first, rest) = records.split_at(records.len() / 2);
                self.append(first)?;
                return self.append(rest);
            }
            if self.filled {
                self.set_aside()?;
            }
        }
        self.write(&packed)?;
        self.filled = true;
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        let head = pack(self.form.head.clone(), self.form.compress)?;
        self.filled = self.begun && self.len()? > head.len() as u64;
        if !self.begun && !self.form.head.is_empty() {
            self.write(&head)?;
        }
        self.begun = true;
        Ok(())
    }

    fn write(&mut self, packed: &[u8]) -> io::Result<()> {
        let before = self.len()?;
        self.file.append(packed)?;
        if self.form.sync {
            self.file.sync().inspect_err(|_| self.file.cut(before))?;
        }
        Ok(())
    }

    /// Renames the file to the next free name, and begins a new one.
    pub(super) fn set_aside(&mut self) -> io::Result<()> {
        let reserved = loop {
            self.aside += 1;
            let name = numbered(&self.path, self.aside);
            match File::create_new(&name) {
                Ok(_) => break name,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        };
        if let Err(error) = fs::rename(&self.path, &reserved) {
            fs::remove_file(&reserved)?;
            // Another process has moved it away.
            if error.kind() != ErrorKind::NotFound {
                return Err(error);
            }
        }
        (self.file, self.begun) = open_whole(&self.folder, &self.path, &self.form)?;
        self.begin()
    }
}

/// Opens a file, and returns whether it has any content.
fn open_whole(folder: &Directory, path: &Path, form: &Form) -> io::Result<(Appender, bool)> {
    if path.as_os_str() == "-" {
        return Ok((Appender::of_stdout()?, false));
    }
    let name = Path::new(path.file_name().unwrap_or_default());
    let mut file = folder.open(name, OpenOptions::new().create(true).append(true).read(true))?;
    if !file.metadata()?.is_file() {
        return Ok((Appender::new(file)?, false));
    }
    lock::take(path, &file)?;
    if form.sync
        && let Some(folder) = path.parent()
    {
        // Its name survives a power cut only if its folder is synced.
        parts::sync(folder)?;
    }
    let whole = mend(path, &mut file, form)?;
    Ok((Appender::new(file)?, whole > 0))
}

/// Inserts a number into a file name: `items.jsonl.gz` becomes `items-3.jsonl.gz`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let (stem, _) = plain.rsplit_once('.').unwrap_or((plain, ""));
    path.with_file_name(format!("{stem}-{number}{}", &name[stem.len()..]))
}
