//! Reading files that hold a short text.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Reads a file, if it is UTF-8 of at most `kilobytes` KB.
///
/// # Errors
/// Besides the system's errors, fails if it is not a regular file, larger, or no text.
pub(crate) fn read(path: &Path, kilobytes: u16) -> io::Result<String> {
    let refuse = |why: String| Err(io::Error::other(why));
    // Checked before it is opened: opening a pipe would wait.
    if !fs::metadata(path)?.is_file() {
        return refuse("is no file".to_owned());
    }
    let most = u64::from(kilobytes) * 1024;
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return refuse(format!("is larger than {kilobytes} KB"));
    }
    String::from_utf8(bytes).or_else(|_| refuse("is not UTF-8".to_owned()))
}
