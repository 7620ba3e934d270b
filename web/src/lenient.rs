//! Answers that browsers read and hyper does not, asked for once more over a connection of their own: an odd status
//! line, chunks by HTTP/1.0, odd line ends or trailers of chunks, or a length beside another transfer coding. What a
//! browser does not read is no answer here either. From then on the origin is asked in this way at once, for an hour.

use std::io;

use bytes::{Bytes, BytesMut};
use futures::stream;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::{Method, StatusCode, Version};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use trawl_common::settings;
use url::{Position, Url};

use super::guard::Guard;

/// Maximum size in bytes of a head, the same as hyper's, and of a line with the length of a chunk.
const MAX_HEAD: usize = 400 * 1024;
const MAX_CHUNK_LINE: usize = 16 * 1024;

/// Maximum number of header fields, and of interim responses.
const MAX_FIELDS: usize = 256;
const MAX_INTERIM: usize = 100;

/// Maximum number of bytes before `HTTP`.
const MAX_JUNK: usize = 4;

/// Size of a body's parts in bytes.
const PART: usize = 32 * 1024;

/// A request without a body, and the means to send it.
pub(super) struct Ask<'a> {
    pub(super) guard: &'a Guard,
    pub(super) tls: &'a ClientConfig,
    pub(super) settings: &'a settings::Fetch,
    pub(super) method: Method,
    pub(super) url: &'a Url,
    /// The header fields of all requests, which its own fields replace.
    pub(super) common: &'a HeaderMap,
    pub(super) fields: HeaderMap,
}

impl Ask<'_> {
    /// Sends the request, and reads the head of the response as browsers do.
    pub(super) async fn send(self) -> io::Result<reqwest::Response> {
        let mut stream = BufReader::new(self.connect().await?);
        stream.write_all(&self.head()).await?;
        stream.flush().await?;
        let mut head = Head::read(&mut stream).await?;
        for _ in 0..MAX_INTERIM {
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                break;
            }
            head = Head::read(&mut stream).await?;
        }
        let framing = head.framing(&self.method)?;
        let body = stream::try_unfold((stream, framing), async |(mut stream, mut framing)| {
            let part = framing.next(&mut stream).await?;
            Ok::<_, io::Error>(part.map(|part| (part, (stream, framing))))
        });
        let mut response = hyper::Response::new(reqwest::Body::wrap_stream(body));
        *response.status_mut() = head.status;
        *response.headers_mut() = head.fields;
        Ok(response.into())
    }

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.url.port_or_known_default().unwrap_or_default();
        let addresses =
            self.guard.addresses(host, port).await.map_err(|refused| io::Error::other(refused.detail))?;
        let connection = timeout(self.settings.connect_timeout, TcpStream::connect(addresses.as_slice()));
        let connection = connection.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if self.url.scheme() != "https" {
            return Ok(Box::new(connection));
        }
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(TlsConnector::from(std::sync::Arc::new(tls)).connect(name, connection).await?))
    }

    fn head(&self) -> Vec<u8> {
        let (host, target) = (
            &self.url[Position::BeforeHost..Position::AfterPort],
            &self.url[Position::BeforePath..Position::AfterQuery],
        );
        let mut head = format!("{} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n", self.method)
            .into_bytes();
        let is_common = |name: &HeaderName| !self.fields.contains_key(name);
        let common = self.common.iter().filter(|(name, _)| is_common(name));
        for (name, value) in
            common.chain(&self.fields).filter(|(name, _)| *name != HOST && name.as_str() != "connection")
        {
            head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        head.extend(b"\r\n");
        head
    }
}

/// Whether hyper reads an answer until its connection ends, although browsers read as much as its length says: beside a
/// transfer coding other than chunks.
pub(super) fn has_two_ends(response: &reqwest::Response) -> bool {
    let (fields, mut codings) = (response.headers(), response.headers().get_all(TRANSFER_ENCODING).iter());
    response.version() == Version::HTTP_11
        && fields.contains_key(CONTENT_LENGTH)
        && fields.contains_key(TRANSFER_ENCODING)
        && !codings.any(is_chunked)
}

/// Whether a transfer coding is that of chunks.
fn is_chunked(coding: &HeaderValue) -> bool {
    coding.as_bytes().to_ascii_lowercase().ends_with(b"chunked")
}

/// A connection.
trait Stream: AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Stream for T {}

/// The head of a response.
#[derive(Debug)]
struct Head {
    status: StatusCode,
    /// Whether it is of HTTP/1.0, which knows no chunks.
    is_old: bool,
    fields: HeaderMap,
}

impl Head {
    async fn read(stream: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Self> {
        let mut left = MAX_HEAD;
        let mut first = line(stream, &mut left).await?;
        while first.is_empty() {
            first = line(stream, &mut left).await?;
        }
        let status = status(&first).ok_or_else(|| invalid("no answer of HTTP"))?;
        let is_old = first.windows(8).any(|version| version.eq_ignore_ascii_case(b"HTTP/1.0"));
        let mut lines: Vec<Vec<u8>> = Vec::new();
        loop {
            let line = line(stream, &mut left).await?;
            match (line.first(), lines.last_mut()) {
                (None, _) => break,
                // Obsolete folding (RFC 9112 5.2).
                (Some(b' ' | b'\t'), Some(before)) => before.extend([b" ", line.trim_ascii()].concat()),
                _ => lines.push(line),
            }
            if lines.len() > MAX_FIELDS {
                return Err(invalid("too many header fields"));
            }
        }
        let fields = lines.iter().filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = HeaderName::from_bytes(line[..colon].trim_ascii()).ok()?;
            Some((name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?))
        });
        Ok(Self { status, is_old, fields: fields.collect() })
    }

    /// Returns how the end of the body is found (RFC 9112 6.3).
    fn framing(&self, method: &Method) -> io::Result<Framing> {
        let has_none = *method == Method::HEAD || matches!(self.status.as_u16(), 100..200 | 204 | 304);
        if has_none {
            return Ok(Framing::Length(0));
        }
        if self.fields.get_all(TRANSFER_ENCODING).iter().any(is_chunked) {
            return Ok(if self.is_old { Framing::Start } else { Framing::Chunk(0) });
        }
        let mut lengths: Vec<&HeaderValue> = self.fields.get_all(CONTENT_LENGTH).iter().collect();
        lengths.dedup();
        match lengths.as_slice() {
            [] => Ok(Framing::Close),
            [length] => {
                let length = length.to_str().ok().and_then(|length| length.parse().ok());
                Ok(length.map_or(Framing::Close, Framing::Length))
            }
            _ => Err(invalid("two lengths")),
        }
    }
}

/// Returns the status of a first line: 200 if it has none, as in browsers.
fn status(line: &[u8]) -> Option<StatusCode> {
    let is_http = |window: &[u8]| window.eq_ignore_ascii_case(b"HTTP");
    let rest = match line.windows(4).take(MAX_JUNK + 1).position(is_http) {
        Some(at) => &line[at + 4..],
        None => line.strip_prefix(b"ICY ").map(|_| &line[3..])?,
    };
    let rest = &rest[rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len())..];
    let rest = rest.trim_ascii_start();
    let digits = &rest[..rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())];
    if digits.is_empty() { Some(StatusCode::OK) } else { StatusCode::from_bytes(digits).ok() }
}

/// How the end of a body is found, and the remaining length.
#[derive(Debug)]
enum Framing {
    Length(u64),
    /// Chunks if the first line is the size of one, and else all that comes.
    Start,
    /// The bytes that are left of the present chunk: none before the first.
    Chunk(u64),
    Close,
    End,
}

impl Framing {
    /// Reads the next part; `None` at the end.
    async fn next(&mut self, stream: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<Bytes>> {
        if let Self::Start = self {
            let mut first = Vec::new();
            match stream.take(MAX_CHUNK_LINE as u64).read_until(b'\n', &mut first).await {
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
                _ => {}
            }
            let size = if first.ends_with(b"\n") { size(&first) } else { None };
            *self = match size {
                Some(size) => Self::of_chunk(size, stream).await,
                None if first.is_empty() => Self::End,
                None => Self::Close,
            };
            if let Self::Close = self {
                return Ok(Some(first.into()));
            }
        }
        if let Self::Chunk(0) = self {
            let line = line(stream, &mut { MAX_CHUNK_LINE }).await?;
            let size = size(&line).ok_or_else(|| invalid("invalid size of a chunk"))?;
            *self = Self::of_chunk(size, stream).await;
        }
        let most = match self {
            Self::End | Self::Start | Self::Length(0) => return Ok(None),
            Self::Length(left) | Self::Chunk(left) => (*left).min(PART as u64),
            Self::Close => PART as u64,
        };
        let mut part = BytesMut::with_capacity(most as usize);
        let read = match stream.take(most).read_buf(&mut part).await {
            Err(error) if matches!(self, Self::Close) && error.kind() == io::ErrorKind::UnexpectedEof => 0,
            read => read? as u64,
        };
        match self {
            Self::Length(_) | Self::Chunk(_) if read == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Self::Length(left) => *left -= read,
            Self::Chunk(left) => {
                *left -= read;
                if *left == 0 && !line(stream, &mut { MAX_CHUNK_LINE }).await?.is_empty() {
                    return Err(invalid("a chunk is longer than its size"));
                }
            }
            Self::Close if read == 0 => return Ok(None),
            Self::Close | Self::End | Self::Start => {}
        }
        Ok(Some(part.freeze()))
    }

    /// Begins a chunk of this size; after the last one it reads the trailers.
    async fn of_chunk(size: u64, stream: &mut (impl AsyncBufReadExt + Unpin)) -> Self {
        if size > 0 {
            return Self::Chunk(size);
        }
        // Nothing is missing if the trailers are.
        let mut left = MAX_HEAD;
        while line(stream, &mut left).await.is_ok_and(|line| !line.is_empty()) {}
        Self::End
    }
}

/// Returns the size of a chunk that a line says.
fn size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let size = str::from_utf8(size).ok().filter(|size| size.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(size, 16).ok()
}

/// Reads a line without its end, of at most `left` bytes, which it takes. At the end of the stream it is empty.
async fn line(stream: &mut (impl AsyncBufReadExt + Unpin), left: &mut usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let read = stream.take(*left as u64).read_until(b'\n', &mut line).await?;
    *left -= read;
    if line.pop_if(|byte| *byte == b'\n').is_none() {
        return Err(if *left == 0 {
            invalid("too long a head")
        } else {
            io::ErrorKind::UnexpectedEof.into()
        });
    }
    line.pop_if(|byte| *byte == b'\r');
    Ok(line)
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_may_be_odd() {
        for (line, code) in [
            ("HTTP/1.1 200 OK", 200),
            ("HTTP/1.1  404", 404),
            ("http/1.1 200 ok", 200),
            ("HTTP/1.1 200OK", 200),
            ("HTTP 404 Not Found", 404),
            ("\u{1}HTTP/1.1 301 x", 301),
            ("HTTP/1.1", 200),
            ("HTTP/1.1 OK", 200),
            ("HTTP/3.0 200", 200),
            ("ICY 200 OK", 200),
        ] {
            assert_eq!(status(line.as_bytes()).map(|status| status.as_u16()), Some(code), "{line}");
        }
        for line in ["", "<html>", "220 mail.example.com ESMTP", "HTTP/1.1 000 X", "HTTP/1.1 2000"] {
            assert_eq!(status(line.as_bytes()), None, "{line}");
        }
    }
}
