//! robots.txt files: `robots:<origin>`, the status on the first line, then the file as it came.

use bytes::Bytes;
use trawl_common::ports::{Error, ErrorKind, Result, RobotsEntry, RobotsFile};

/// What stands in place of a file while someone fetches it.
pub(super) const AWAITED: &str = "awaited";

pub(super) fn encode(file: &RobotsFile) -> Vec<u8> {
    let mut stored = format!("{}\n", file.status).into_bytes();
    stored.extend_from_slice(&file.body);
    stored
}

pub(super) fn decode(stored: Vec<u8>) -> Result<RobotsEntry> {
    if stored == AWAITED.as_bytes() {
        return Ok(RobotsEntry::Awaited);
    }
    let corrupt = || Error::new(ErrorKind::Corrupt, "redis: a robots.txt is stored in another form");
    let line = stored.iter().position(|byte| *byte == b'\n').ok_or_else(corrupt)?;
    let status = std::str::from_utf8(&stored[..line]).ok().and_then(|status| status.parse().ok());
    let status = status.ok_or_else(corrupt)?;
    Ok(RobotsEntry::Known(RobotsFile { status, body: Bytes::from(stored).slice(line + 1..) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let file = RobotsFile { status: 200, body: Bytes::from_static(b"\nUser-agent: *\n\xff") };
        assert_eq!(decode(encode(&file)).unwrap(), RobotsEntry::Known(file));
        assert!(decode(b"nonsense".to_vec()).is_err());
        assert_eq!(decode(AWAITED.into()).unwrap(), RobotsEntry::Awaited);
    }
}
