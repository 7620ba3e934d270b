//! robots.txt files: `robots:<key>`, the status on the first line, then the file as received. A large one has the
//! word `zstd` and its size in bytes after the status, then the file compressed.

use bytes::Bytes;
use trawl_common::politeness::robots::{MAX_BYTES, RobotsFile};
use trawl_common::ports::{Error, ErrorKind, Result, RobotsEntry};

/// The value that stands for a file while a worker fetches it.
pub(crate) const AWAITED: &str = "awaited";

/// Maximum size of a value: a whole file with its head; compression makes none much larger than itself.
pub(crate) const MAX_STORED: usize = MAX_BYTES + 64 * 1024;

/// Files smaller than this, in bytes, are stored so that `redis-cli` shows them.
const SMALL: usize = 2 * 1024;

pub(crate) fn encode(file: &RobotsFile) -> Result<Vec<u8>> {
    let RobotsFile { status, body } = file;
    if body.len() <= SMALL {
        return Ok([format!("{status}\n").as_bytes(), body].concat());
    }
    let packed = zstd::bulk::compress(body, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(corrupt)?;
    Ok([format!("{status} zstd {}\n", body.len()).as_bytes(), &packed].concat())
}

fn corrupt(_: impl std::fmt::Debug) -> Error {
    Error::new(ErrorKind::Corrupt, "redis: a robots.txt is stored in another form")
}

pub(crate) fn decode(stored: Vec<u8>) -> Result<RobotsEntry> {
    if stored == AWAITED.as_bytes() {
        return Ok(RobotsEntry::Awaited);
    }
    let line = stored.iter().position(|byte| *byte == b'\n').ok_or("no line").map_err(corrupt)?;
    let head = std::str::from_utf8(&stored[..line]).map_err(corrupt)?;
    let (status, length) = match head.split_once(" zstd ") {
        Some((status, length)) => (status, Some(length.parse::<usize>().map_err(corrupt)?)),
        None => (head, None),
    };
    let status = status.parse().map_err(corrupt)?;
    let body = match length.map(|length| length.min(MAX_BYTES)) {
        Some(length) => zstd::bulk::decompress(&stored[line + 1..], length).map_err(corrupt)?.into(),
        None => Bytes::from(stored).slice(line + 1..),
    };
    Ok(RobotsEntry::Known(RobotsFile { status, body }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let file = RobotsFile { status: 200, body: Bytes::from_static(b"\nUser-agent: *\n\xff") };
        assert_eq!(decode(encode(&file).unwrap()).unwrap(), RobotsEntry::Known(file));
        let large = RobotsFile { status: 203, body: vec![b'x'; MAX_BYTES].into() };
        let stored = encode(&large).unwrap();
        assert!(stored.starts_with(b"203 zstd 512000\n") && stored.len() < 1_000, "{}", stored.len());
        assert_eq!(decode(stored).unwrap(), RobotsEntry::Known(large));
        assert!(decode(b"200 zstd 100\nnonsense".to_vec()).is_err());
        assert!(decode(b"nonsense".to_vec()).is_err());
        assert_eq!(decode(AWAITED.into()).unwrap(), RobotsEntry::Awaited);
    }
}
