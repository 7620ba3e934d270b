//! Appending all or nothing.

use std::fs::File;
use std::io::{self, Write};

/// A file that only grows. What a full disk cuts short is taken back.
pub(super) struct Appender {
    file: File,
    /// A pipe or a terminal has no end to mend.
    regular: bool,
    /// How long it was before a write that failed and could not be taken back.
    torn: Option<u64>,
}

impl Appender {
    /// For a file that was opened for appending.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let regular = file.metadata()?.is_file();
        Ok(Self { file, regular, torn: None })
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
        self.file.write_all(bytes).inspect_err(|_| self.cut(before))
    }

    /// Takes back what is beyond so many bytes: at once, or when that fails before the next write.
    pub(super) fn cut(&mut self, whole: u64) {
        if self.regular && self.file.set_len(whole).is_err() {
            self.torn = Some(whole);
        }
    }
}
