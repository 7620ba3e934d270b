//! The index of a WARC file, in the form CDXJ: a line for each capture. Its key groups a site's pages when lines
//! are sorted.

use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};

use super::record::{Capture, Records};
use super::surt;

/// The fields of a capture's line, with numbers as text, as readers expect.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexEntry {
    url: String,
    mime: String,
    status: String,
    digest: String,
    length: String,
    offset: String,
    filename: String,
}

impl IndexEntry {
    pub(super) fn new(capture: &Capture, records: &Records, offset: u64, filename: &str) -> Self {
        let kind = capture.response().content_type().unwrap_or_default();
        let mime = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Self {
            url: capture.target().to_string(),
            mime: if mime.is_empty() { "unk".to_owned() } else { mime },
            status: capture.response().status.to_string(),
            digest: records.payload_digest.clone(),
            length: records.response.len().to_string(),
            offset: offset.to_string(),
            filename: filename.to_owned(),
        }
    }

    /// Returns the end of its record.
    fn end(&self) -> Option<u64> {
        self.offset.parse::<u64>().ok()?.checked_add(self.length.parse().ok()?)
    }
}

/// Returns a capture's line.
pub(super) fn line(capture: &Capture, entry: &IndexEntry) -> io::Result<Vec<u8>> {
    let time: String = capture.date().chars().filter(char::is_ascii_digit).take(14).collect();
    let mut line = format!("{} {time} ", surt::key(capture.target())).into_bytes();
    serde_json::to_writer(&mut line, entry)?;
    line.push(b'\n');
    Ok(line)
}

/// Returns the lengths of the complete parts of an index, and of its file of `length` bytes: the lines up to the
/// last line feed whose records are in the file, and the file up to the last of them.
pub(super) fn whole(index: &[u8], length: u64) -> io::Result<(u64, u64)> {
    let (mut lines, mut records) = (0, 0);
    for line in index.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        let end = end(line).ok_or_else(|| {
            io::Error::new(
                ErrorKind::InvalidData,
                format!("what follows byte {lines} is no line of an index"),
            )
        })?;
        if end > length {
            break;
        }
        (lines, records) = (lines + line.len() as u64, end);
    }
    Ok((lines, records))
}

fn end(line: &[u8]) -> Option<u64> {
    let json = line.splitn(3, |&byte| byte == b' ').nth(2)?;
    serde_json::from_slice::<IndexEntry>(json).ok()?.end()
}
