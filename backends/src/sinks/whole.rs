//! Finds the end of the last complete record of a file after an interrupted write.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};

use flate2::bufread::GzDecoder;
use trawl_common::settings::Compress;

/// The records of an uncompressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    /// Lines, each ended by a line feed.
    Lines,
    /// Lines in which a line feed between quotation marks ends nothing (RFC 4180).
    Quoted,
}

/// The UTF-8 byte order mark that a file of comma-separated values may begin with.
pub(super) const MARK: &[u8] = "\u{feff}".as_bytes();

/// Magic bytes at the beginning of each member or frame of a compressed file; `None` for an uncompressed one.
pub(super) fn magic(compress: Compress) -> Option<&'static [u8]> {
    match compress {
        Compress::None => None,
        Compress::Gzip => Some(&[0x1f, 0x8b, 8]),
        Compress::Zstd => Some(&[0x28, 0xb5, 0x2f, 0xfd]),
    }
}

/// Returns the number of complete bytes of `file`: records, or the members or frames that [`pack`] creates. Fails with
/// `InvalidData` if the file is not of this form.
pub(super) fn whole(file: &mut File, compress: Compress, records: Records) -> io::Result<u64> {
    match (compress, records) {
        (Compress::None, Records::Lines) => last_line(file),
        (Compress::None, Records::Quoted) => last_record(file),
        (Compress::Gzip, _) => members(file, |input| {
            io::copy(&mut GzDecoder::new(input), &mut io::sink())?;
            Ok(())
        }),
        (Compress::Zstd, _) => members(file, |input| {
            let mut frame = zstd::Decoder::with_buffer(input)?.single_frame();
            io::copy(&mut frame, &mut io::sink())?;
            Ok(())
        }),
    }
}

/// Packs these bytes into one complete member (gzip) or frame (zstd). All of them together read as one file.
pub(super) fn pack(bytes: Vec<u8>, compress: Compress) -> io::Result<Vec<u8>> {
    match compress {
        Compress::None => Ok(bytes),
        Compress::Gzip => gzip(&bytes),
        Compress::Zstd => zstd::encode_all(&*bytes, 0),
    }
}

/// Packs bytes into one gzip member.
pub(super) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    io::Write::write_all(&mut member, bytes)?;
    member.finish()
}

/// Returns a reader of the uncompressed content of a file.
pub(super) fn unpack<'a>(file: impl Read + 'a, compress: Compress) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match compress {
        Compress::None => Box::new(file),
        Compress::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Compress::Zstd => Box::new(zstd::Decoder::new(file)?),
    })
}

/// Returns the end of the last line that has a line feed.
fn last_line(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = [0; 4096];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Returns the end of the last line whose line feed is outside quotation marks. This can only be determined from the
/// start.
fn last_record(file: &mut File) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut input = BufReader::with_capacity(1 << 16, file);
    let (mut at, mut end, mut quoted) = (0, 0, false);
    loop {
        let block = input.fill_buf()?;
        if block.is_empty() {
            return Ok(end);
        }
        for &byte in block {
            at += 1;
            match byte {
                b'"' => quoted = !quoted,
                b'\n' if !quoted => end = at,
                _ => {}
            }
        }
        let length = block.len();
        input.consume(length);
    }
}

/// Returns the end of the last member that `read` reads to its end.
fn members(file: &mut File, read: impl Fn(&mut BufReader<&mut File>) -> io::Result<()>) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut input = BufReader::with_capacity(1 << 16, file);
    let mut end = 0;
    while !input.fill_buf()?.is_empty() {
        match read(&mut input) {
            Ok(()) => end = input.stream_position()?,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            // Damage in the middle is not from a crash, and the part after it may be complete.
            Err(error) => {
                let what = format!(
                    "what follows byte {end} is not as trawl writes it ({error}): move the file away"
                );
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
        }
    }
    Ok(end)
}
