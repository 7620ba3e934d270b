//! Appending either all bytes or none.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

/// The exit code by which a shell shows that SIGPIPE ended a program.
const BY_SIGPIPE: i32 = 128 + 13;

/// A file that only grows. A partial write on a full disk is undone.
pub(super) struct Appender {
    file: File,
    /// Whether it is a regular file; a pipe or a terminal cannot be truncated.
    regular: bool,
    is_stdout: bool,
    /// The length before a write that failed and could not be undone.
    torn: Option<u64>,
}

impl Appender {
    /// Creates an appender to standard output, of which nothing is undone.
    pub(super) fn of_stdout() -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self { file, regular: false, is_stdout: true, torn: None })
    }

    /// Creates an appender to a file that was opened for appending.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let regular = file.metadata()?.is_file();
        Ok(Self { file, regular, is_stdout: false, torn: None })
    }

    /// Returns the file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether it is a file, not a pipe or device.
    pub(super) fn is_regular(&self) -> bool {
        self.regular
    }

    /// Returns its length in bytes.
    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Appends these bytes in one write, or nothing.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(whole) = self.torn {
            self.file.set_len(whole)?;
            self.torn = None;
        }
        let before = self.len()?;
        let written = self.file.write_all(bytes);
        if written.as_ref().is_err_and(|error| self.is_stdout && error.kind() == ErrorKind::BrokenPipe) {
            // The reader of standard output has closed it. Programs then end by SIGPIPE, which Rust ignores; the
            // crawl can be resumed from its state.
            std::process::exit(BY_SIGPIPE);
        }
        written.inspect_err(|_| self.cut(before))
    }

    /// Waits until everything appended is on the disk; returns at once if it is no file.
    pub(super) fn sync(&self) -> io::Result<()> {
        if self.regular { self.file.sync_data() } else { Ok(()) }
    }

    /// Truncates the file to `whole` bytes: at once, or if that fails, before the next write.
    pub(super) fn cut(&mut self, whole: u64) {
        if self.regular && self.file.set_len(whole).is_err() {
            self.torn = Some(whole);
        }
    }
}
