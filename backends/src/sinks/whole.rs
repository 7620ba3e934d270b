//! Where the whole part of a file ends that a process may have left in the middle of a write.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};

use flate2::bufread::GzDecoder;
use trawl_common::settings::Compress;

/// What a file that is not compressed consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    /// Lines, each ended by a line feed.
    Lines,
    /// Lines in which a line feed between quotation marks ends nothing (RFC 4180).
    Quoted,
}

/// The mark of UTF-8 that a file of comma-separated values may begin with.
pub(super) const MARK: &[u8] = "\u{feff}".as_bytes();

/// The bytes that each member or frame of a compressed file begins with; `None` for one that is not compressed.
pub(super) fn magic(compress: Compress) -> Option<&'static [u8]> {
    match compress {
        Compress::None => None,
        Compress::Gzip => Some(&[0x1f, 0x8b, 8]),
        Compress::Zstd => Some(&[0x28, 0xb5, 0x2f, 0xfd]),
    }
}

/// How many bytes of `file` are whole: records, or the members or frames that [`pack`] makes. `InvalidData` if it is
/// no such file.
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

/// One whole member (gzip) or frame (zstd) of these bytes. Those of a file read as one.
pub(super) fn pack(bytes: Vec<u8>, compress: Compress) -> io::Result<Vec<u8>> {
    match compress {
        Compress::None => Ok(bytes),
        Compress::Gzip => gzip(&bytes),
        Compress::Zstd => zstd::encode_all(&*bytes, 0),
    }
}

/// One gzip member.
pub(super) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    io::Write::write_all(&mut member, bytes)?;
    member.finish()
}

/// What a file holds, unpacked.
pub(super) fn unpack<'a>(file: impl Read + 'a, compress: Compress) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match compress {
        Compress::None => Box::new(file),
        Compress::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Compress::Zstd => Box::new(zstd::Decoder::new(file)?),
    })
}

/// Where the last line that ends in a line feed ends.
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

/// Where the last line ends whose line feed is outside quotation marks: that shows only from the start.
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

/// Where the last member ends that `read` reads to its end.
fn members(file: &mut File, read: impl Fn(&mut BufReader<&mut File>) -> io::Result<()>) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut input = BufReader::with_capacity(1 << 16, file);
    let mut end = 0;
    while !input.fill_buf()?.is_empty() {
        match read(&mut input) {
            Ok(()) => end = input.stream_position()?,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            // What is broken in the middle was not broken by a crash, and what follows it may be whole.
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
