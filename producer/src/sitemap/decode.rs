//! Decompresses a source if necessary, and examines its first bytes.

use std::io::{self, Cursor, Read};

use encoding_rs::UTF_8;
use flate2::read::MultiGzDecoder;

use super::charset::Utf8Reader;
use super::error::Fault;
use super::origin::Origin;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// Number of bytes that contain a byte order mark and an XML declaration.
const HEAD_BYTES: usize = 1024;

/// Returns `source` without its gzip compression, if it has one, limited to `max_bytes`.
pub(super) fn inflate<R: Read>(source: R, max_bytes: u64) -> Result<Head<Inflated<R>>, Fault> {
    let source = Head::new(Limited { source, left: max_bytes, max_bytes }, GZIP_MAGIC.len());
    let inflated = match source.peek() == GZIP_MAGIC {
        true => Inflated::Gzip(Box::new(MultiGzDecoder::new(source))),
        false => Inflated::Plain(source),
    };
    let inflated = Head::new(inflated, HEAD_BYTES);
    match inflated.peek().starts_with(GZIP_MAGIC) {
        true => Err(Fault::GzipTwice),
        false => Ok(inflated),
    }
}

/// A source after decompression. Its own errors are [`Fault`]s within [`io::Error`].
pub(super) enum Inflated<R> {
    Plain(Head<Limited<R>>),
    Gzip(Box<MultiGzDecoder<Head<Limited<R>>>>),
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(out),
            Self::Gzip(source) => source.read(out).map_err(gzip_fault),
        }
    }
}

/// A decompressed source whose beginning has been read.
pub struct Plain<R>(Head<Inflated<R>>);

impl<R: Read> Plain<R> {
    /// Returns `source` without its gzip compression, if it has one, limited to `max_bytes`.
    ///
    /// # Errors
    /// Fails if the source was compressed twice.
    pub fn new(source: R, max_bytes: u64) -> Result<Self, Fault> {
        inflate(source, max_bytes).map(Self)
    }

    /// The first byte that is neither blank nor part of a byte order mark; `None` if the first kilobyte has none.
    pub fn first(&self) -> Option<u8> {
        let head = self.0.peek();
        head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start().first().copied()
    }

    /// Decodes the source to UTF-8, if its header names another charset.
    pub(crate) fn into_utf_8<'a>(self, origin: &Origin) -> Box<dyn Read + 'a>
    where
        R: 'a,
    {
        match origin.charset {
            Some(charset) if charset != UTF_8 => Box::new(Utf8Reader::new(self.0, Some(charset), u64::MAX)),
            _ => Box::new(self.0),
        }
    }
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

fn gzip_fault(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::GzipEndsEarly.into(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Fault::GzipCorrupt(error.to_string()).into()
        }
        _ => error,
    }
}

/// A source that fails after a number of compressed bytes: gzip can be long and decompress to nothing, so its content
/// is no measure.
pub(super) struct Limited<R> {
    source: R,
    left: u64,
    max_bytes: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(out)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(Fault::TooLarge(self.max_bytes).into()),
        }
        Ok(read)
    }
}

/// A source whose first bytes were read ahead; reading returns them first.
pub(super) struct Head<R> {
    ahead: Cursor<Vec<u8>>,
    /// An error met while reading ahead, returned after the bytes before it.
    failure: Option<io::Error>,
    rest: R,
}

impl<R: Read> Head<R> {
    /// Reads up to `len` bytes ahead. Without XML the first line is enough: a pipe may have no more data for a while.
    fn new(mut rest: R, len: usize) -> Self {
        let (mut ahead, mut failure) = (Vec::with_capacity(len), None);
        let mut part = [0; HEAD_BYTES];
        while ahead.len() < len && !has_a_line(&ahead) {
            let space = part.len().min(len - ahead.len());
            match rest.read(&mut part[..space]) {
                Ok(0) => break,
                Ok(read) => ahead.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        Self { ahead: Cursor::new(ahead), failure, rest }
    }

    /// The bytes read ahead; fewer than requested only if the source or its first line is shorter.
    pub(super) fn peek(&self) -> &[u8] {
        self.ahead.get_ref()
    }

    /// Drops the first `len` bytes of those read ahead.
    pub(super) fn skip(&mut self, len: usize) {
        self.ahead.set_position(len as u64);
    }
}

impl<R: Read> Read for Head<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.ahead.read(out)?;
        if read > 0 {
            return Ok(read);
        }
        self.failure.take().map_or_else(|| self.rest.read(out), Err)
    }
}

/// Whether this has the first non-blank line of a list. XML and encodings unlike ASCII need more bytes to be
/// recognized.
fn has_a_line(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    !text.starts_with(b"<") && text.contains(&b'\n') && !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use trawl_common::text::counted;

    use super::super::Limits;
    use super::super::tests::{locs, outcome, report, with_limits};

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn urls(range: std::ops::Range<u32>) -> String {
        range.map(|n| format!("http://a.example/{n}/{}\n", n.wrapping_mul(2_654_435_761))).collect()
    }

    #[test]
    fn gzip_is_known_by_its_content() {
        assert_eq!(locs(&gzip(b"http://a.example/\n")), ["http://a.example/"]);
    }

    #[test]
    fn gzip_files_without_end_that_hold_nothing_are_too_large() {
        struct Endless(Vec<u8>, usize);
        impl Read for Endless {
            fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
                let read = (&self.0[self.1..]).read(out)?;
                self.1 = (self.1 + read) % self.0.len();
                Ok(read)
            }
        }
        let limits = Limits { max_bytes: 100_000, ..Limits::default() };
        let (_, result) = with_limits(Endless(gzip(b""), 0), &limits);
        assert_eq!(result.unwrap_err().to_string(), "more than 100000 bytes, after 0 entries");
    }

    #[test]
    fn gzip_files_put_one_after_the_other_are_one_source() {
        let joined = [gzip(b"http://a.example/1\n"), gzip(b"http://a.example/2\n")].concat();
        assert_eq!(locs(&joined), ["http://a.example/1", "http://a.example/2"]);
    }

    #[test]
    fn a_cut_gzip_stream_gives_what_came_before_and_no_half_url() {
        let whole = gzip(urls(0..20_000).as_bytes());
        let (found, error) = report(&whole[..whole.len() / 2]);
        let expected: Vec<String> = urls(0..20_000).lines().map(str::to_owned).collect();
        assert!(found.len() > 1000);
        assert_eq!(found, expected[..found.len()]);
        assert_eq!(error, format!("gzip stream ends early, after {}", counted(found.len() as u64, "entry")));
    }

    #[test]
    fn a_short_gzip_stream_without_its_end_gives_what_it_has() {
        let whole = gzip(b"http://a.example/1\nhttp://a.example/2\n");
        let (found, error) = report(&whole[..whole.len() - 4]);
        assert_eq!(found, ["http://a.example/1", "http://a.example/2"]);
        assert_eq!(error, "gzip stream ends early, after 2 entries");
    }

    #[test]
    fn damage_within_gzip_is_named() {
        let mut damaged = gzip(urls(0..20_000).as_bytes());
        let middle = damaged.len() / 2;
        damaged[middle..middle + 64].fill(0xff);
        assert!(report(damaged.as_slice()).1.starts_with("gzip stream is corrupt: "));
    }

    #[test]
    fn gzip_within_gzip_is_refused() {
        let error = outcome(&gzip(&gzip(b"http://a.example/\n"))).unwrap_err();
        assert_eq!(error.to_string(), "compressed twice, after 0 entries");
    }
}
