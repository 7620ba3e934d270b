//! robots.txt files: `robots:<key>`, the status on the first line, then the file as received. A large one has the
//! word `zstd` and its size in bytes after the status, then the file compressed. Without an answer the status is 0, and
//! the class and the detail of the failure follow.

use bytes::Bytes;
use trawl_common::frontier::outcome::Class;
use trawl_common::politeness::robots::{MAX_BYTES, RobotsFile};
use trawl_common::ports::{Error, ErrorKind, Result, RobotsEntry};

/// The value that stands for a file while a worker fetches it.
pub(crate) const AWAITED: &str = "awaited";

/// Maximum size of a value: a whole file with its head; compression makes none much larger than itself.
pub(crate) const MAX_STORED: usize = MAX_BYTES + 64 * 1024;

/// The text between the class of a failure and its detail.
const BEFORE_DETAIL: &str = ": ";

/// Files smaller than this, in bytes, are stored so that `redis-cli` shows them.
const SMALL: usize = 2 * 1024;

pub(crate) fn encode(file: &RobotsFile) -> Result<Vec<u8>> {
    let RobotsFile { status, body, failure } = file;
    if let Some(class) = failure {
        return Ok([format!("{status}\n{class}{BEFORE_DETAIL}").as_bytes(), body].concat());
    }
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
    if status == 0 {
        return Ok(RobotsEntry::Known(unanswered(Bytes::from(stored).slice(line + 1..))));
    }
    let body = match length.map(|length| length.min(MAX_BYTES)) {
        Some(length) => zstd::bulk::decompress(&stored[line + 1..], length).map_err(corrupt)?.into(),
        None => Bytes::from(stored).slice(line + 1..),
    };
    Ok(RobotsEntry::Known(RobotsFile { status, body, failure: None }))
}

/// Returns the failure that is stored in place of a file.
fn unanswered(stored: Bytes) -> RobotsFile {
    let named = str::from_utf8(&stored).ok().and_then(|text| text.split_once(BEFORE_DETAIL));
    let named = named.and_then(|(name, _)| Some((Class::named(name)?, name.len() + BEFORE_DETAIL.len())));
    match named {
        Some((class, detail)) => RobotsFile { status: 0, body: stored.slice(detail..), failure: Some(class) },
        None => RobotsFile { status: 0, body: stored, failure: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let file =
            RobotsFile { status: 200, body: Bytes::from_static(b"\nUser-agent: *\n\xff"), failure: None };
        assert_eq!(decode(encode(&file).unwrap()).unwrap(), RobotsEntry::Known(file));
        let large = RobotsFile { status: 203, body: vec![b'x'; MAX_BYTES].into(), failure: None };
        let stored = encode(&large).unwrap();
        assert!(stored.starts_with(b"203 zstd 512000\n") && stored.len() < 1_000, "{}", stored.len());
        assert_eq!(decode(stored).unwrap(), RobotsEntry::Known(large));
        assert!(decode(b"200 zstd 100\nnonsense".to_vec()).is_err());
        assert!(decode(b"nonsense".to_vec()).is_err());
        assert_eq!(decode(AWAITED.into()).unwrap(), RobotsEntry::Awaited);
    }
    #[test]
    fn a_failure_is_stored_as_its_class_and_detail_and_read_as_it_was_written() {
        for class in Class::ALL {
            let file = RobotsFile { status: 0, body: Bytes::from_static(b"a: b"), failure: Some(*class) };
            let stored = encode(&file).unwrap();
            assert_eq!(stored, format!("0\n{class}: a: b").into_bytes());
            assert_eq!(decode(stored).unwrap(), RobotsEntry::Known(file));
        }
        let odd = RobotsFile { status: 0, body: Bytes::from_static(b"newer: a"), failure: None };
        assert_eq!(decode(b"0\nnewer: a".to_vec()).unwrap(), RobotsEntry::Known(odd));
    }
}
