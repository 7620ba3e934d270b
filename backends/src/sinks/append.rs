//! Appending all or nothing.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

/// How a shell tells that SIGPIPE ended a program.
const BY_SIGPIPE: i32 = 128 + 13;

/// A file that only grows. What a full disk cuts short is taken back.
pub(super) struct Appender {
    file: File,
    /// A pipe or a terminal has no end to mend.
    regular: bool,
    is_stdout: bool,
    /// How long it was before a write that failed and could not be taken back.
    torn: Option<u64>,
}

impl Appender {
    /// For standard output. Whatever is behind it, nothing of it is taken back.
    pub(super) fn of_stdout() -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self { file, regular: false, is_stdout: true, torn: None })
    }

    /// For a file that was opened for appending.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let regular = file.metadata()?.is_file();
        Ok(Self { file, regular, is_stdout: false, torn: None })
    }

    /// What is appended to.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Whether it is a file, and no pipe or device.
    pub(super) fn is_regular(&self) -> bool {
        self.regular
    }

    /// How many bytes it has.
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
            // Who read it wants no more. Programs end by SIGPIPE then, which Rust ignores; the crawl goes on from its state.
            std::process::exit(BY_SIGPIPE);
        }
        written.inspect_err(|_| self.cut(before))
    }

    /// Returns when all that was appended is on the disk; at once for what is no file.
    pub(super) fn sync(&self) -> io::Result<()> {
        if self.regular { self.file.sync_data() } else { Ok(()) }
    }

    /// Takes back what is beyond so many bytes: at once, or when that fails before the next write.
    pub(super) fn cut(&mut self, whole: u64) {
        if self.regular && self.file.set_len(whole).is_err() {
            self.torn = Some(whole);
        }
    }
}
