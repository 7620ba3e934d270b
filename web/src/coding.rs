//! Undoes content codings (RFC 9110 8.4) one after the other, each within a limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread;
use async_compression::zstd::DParameter;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, BufReader, ReadBuf};
use trawl_common::frontier::outcome::{Class, Failure};

use super::gzip::Gzip;
use super::limited::{Limited, is_from_below};

/// The supported codings, for `Accept-Encoding`.
pub(super) const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// Maximum number of nested codings. Two occur where a proxy compresses a compressed body.
const MAX_DEPTH: usize = 3;

/// The largest window of a zstd body, as a power of two: 8 MiB, which RFC 9659 allows on the web.
const ZSTD_WINDOW_LOG: u32 = 23;

/// A body whose codings are being undone.
pub(super) type Reader = Pin<Box<dyn AsyncRead + Send>>;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Returns the codings of a body with these headers, in the order in which they were applied. An unknown label, such as
/// `none` or `UTF-8`, is ignored: browsers read such bodies as they are.
pub(super) fn codings(headers: &HeaderMap) -> Result<Vec<Coding>, Failure> {
    let mut codings = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in value.as_bytes().split(|&byte| byte == b',') {
            let name = name.split(|&byte| byte == b';').next().unwrap_or_default();
            let is_around = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
            let name: Vec<u8> =
                name.iter().filter(|byte| !is_around(byte)).map(u8::to_ascii_lowercase).collect();
            codings.push(match name.as_slice() {
                b"gzip" | b"x-gzip" => Coding::Gzip,
                b"deflate" => Coding::Deflate,
                b"br" => Coding::Brotli,
                b"zstd" => Coding::Zstd,
                _ => continue,
            });
            if codings.len() > MAX_DEPTH {
                let detail = format!("more than {MAX_DEPTH} content codings over each other");
                return Err(Failure::new(Class::Body, detail));
            }
        }
    }
    Ok(codings)
}

/// Returns a reader of `packed` with `codings` undone. If more than `limit` bytes are read, packed, unpacked or in
/// between, it fails with an error that holds a [`TooLarge`](super::limited::TooLarge).
pub(super) async fn unpacked(
    packed: impl AsyncRead + Send + Unpin + 'static,
    codings: &[Coding],
    limit: u64,
) -> io::Result<Reader> {
    let mut reader: Reader = Box::pin(Limited::new(packed, limit));
    for coding in codings.iter().rev() {
        let layer = BufReader::new(reader);
        reader = match coding {
            Coding::Gzip => Box::pin(Limited::new(Gzip::new(layer), limit)),
            Coding::Deflate => Box::pin(Limited::new(inflated(layer).await?, limit)),
            Coding::Brotli => Box::pin(Limited::new(bufread::BrotliDecoder::new(layer), limit)),
            Coding::Zstd => {
                let window = [DParameter::window_log_max(ZSTD_WINDOW_LOG)];
                let mut zstd = bufread::ZstdDecoder::with_params(layer, &window);
                zstd.multiple_members(true);
                Box::pin(Limited::new(Zstd { frames: zstd, has_given: false }, limit))
            }
        };
    }
    Ok(reader)
}

/// Undoes `deflate`, which is the zlib format in RFC 9110, and bare deflate on some servers: the first two bytes
/// decide. The checksum after zlib is ignored, because some servers omit it.
async fn inflated(mut packed: impl AsyncBufRead + Send + Unpin + 'static) -> io::Result<Reader> {
    let mut start = Vec::with_capacity(2);
    (&mut packed).take(2).read_to_end(&mut start).await?;
    let is_zlib =
        start.len() == 2 && start[0] & 0x0f == 8 && u16::from_be_bytes([start[0], start[1]]) % 31 == 0;
    if is_zlib {
        return Ok(Box::pin(bufread::DeflateDecoder::new(packed)));
    }
    Ok(Box::pin(bufread::DeflateDecoder::new(io::Cursor::new(start).chain(packed))))
}

/// Reads frames of zstd. What follows a frame and is none is ignored, as by the decoder of gzip.
struct Zstd<R> {
    frames: bufread::ZstdDecoder<R>,
    has_given: bool,
}

impl<R: AsyncBufRead + Unpin> AsyncRead for Zstd<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.frames).poll_read(cx, buf));
        self.has_given |= buf.filled().len() > before;
        Poll::Ready(match read {
            Err(error) if self.has_given && is_no_frame(&error) => Ok(()),
            read => read,
        })
    }
}

/// Whether the decoder found something else where a frame of zstd could begin: it says so by a text alone.
fn is_no_frame(error: &io::Error) -> bool {
    !is_from_below(error) && error.to_string() == "Unknown frame descriptor"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<Vec<Coding>, Failure> {
        codings(&values.iter().map(|value| (CONTENT_ENCODING, value.parse().unwrap())).collect())
    }

    #[test]
    fn codings_come_in_lists_in_several_headers_and_in_any_case() {
        assert_eq!(of(&[]), Ok(vec![]));
        assert_eq!(of(&["identity", ""]), Ok(vec![]));
        assert_eq!(of(&["GZip , br", "x-gzip"]), Ok(vec![Coding::Gzip, Coding::Brotli, Coding::Gzip]));
        assert_eq!(of(&["\"gzip\";q=1"]), Ok(vec![Coding::Gzip]));
    }

    #[test]
    fn a_label_that_names_no_coding_says_nothing() {
        for label in ["UTF-8", "none", "text/html", "null", "binary", "8bit", "chunked", "compress", "*"] {
            assert_eq!(of(&[label]), Ok(vec![]), "{label}");
        }
        assert_eq!(of(&["utf-8, gzip"]), Ok(vec![Coding::Gzip]));
    }

    #[tokio::test]
    async fn what_follows_a_frame_of_zstd_is_another_or_ignored() {
        use tokio::io::AsyncWriteExt;
        let mut encoder = async_compression::tokio::write::ZstdEncoder::new(Vec::new());
        encoder.write_all(b"text").await.unwrap();
        encoder.shutdown().await.unwrap();
        let frame = encoder.into_inner();
        let read = async |packed: Vec<u8>| {
            let mut text = String::new();
            let mut reader = unpacked(io::Cursor::new(packed), &[Coding::Zstd], 99).await.unwrap();
            reader.read_to_string(&mut text).await.map(|_| text)
        };
        for (tail, text) in [
            (&b""[..], "text"),
            (&b"<!-- cached -->"[..], "text"),
            (&[0; 6][..], "text"),
            (&frame[..], "texttext"),
        ] {
            assert_eq!(read([&frame[..], tail].concat()).await.unwrap(), text, "{tail:?}");
        }
        assert!(read(b"<!-- cached -->".to_vec()).await.is_err());
        assert!(read(frame[..frame.len() - 3].to_vec()).await.is_err());
    }

    #[test]
    fn too_many_codings_are_a_broken_body() {
        assert_eq!(of(&["gzip, gzip", "gzip, gzip"]).unwrap_err().class, Class::Body);
    }
}
