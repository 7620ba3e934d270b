//! Reads a response that an archive keeps as it was on the wire (ISO 28500, annex A).

use bytes::{Bytes, BytesMut};
use httparse::Status;
use reqwest::Response;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::web::headers::Headers;

use super::body::{Body, Limit};
use super::{MemoryBudget, kind};

/// Maximum number of header fields.
const MAX_FIELDS: usize = 1000;

/// Returns the status, the header fields and the body of an archived response, with the codings of the body undone.
///
/// # Errors
/// Fails if it is no response of HTTP/1, or its body is larger than `max_body` or broken.
pub async fn read_archived(
    message: Bytes,
    max_body: u64,
    memory: &MemoryBudget,
) -> Result<(u16, Headers, Bytes), Failure> {
    let mut fields = vec![httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let malformed = |what: &dyn std::fmt::Display| {
        Failure::new(Class::Http, format_args!("the archive has no response of HTTP/1 for it: {what}"))
    };
    let length = match head.parse(&message) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Err(malformed(&"its header ends too early")),
        Err(error) => return Err(malformed(&error)),
    };
    let headers: HeaderMap = head
        .headers
        .iter()
        .filter_map(|field| {
            Some((field.name.parse::<HeaderName>().ok()?, HeaderValue::from_bytes(field.value).ok()?))
        })
        .collect();
    let status = head.code.unwrap_or_default();
    let body = message.slice(length..);
    // Some archives undo the chunks and keep the field.
    let is_chunked =
        headers.get(TRANSFER_ENCODING).is_some_and(|coding| kind::text(coding).contains("chunked"));
    let body = is_chunked.then(|| joined(&body)).flatten().unwrap_or(body);
    let mut response = hyper::Response::new(body);
    *response.status_mut() = status.try_into().map_err(|error| malformed(&error))?;
    *response.headers_mut() = headers;
    let response = Response::from(response);
    let headers = kind::headers(response.headers());
    let read = async { Body::open(response, Limit::Page(max_body)).await?.read(memory).await };
    read.await.map(|body| (status, headers, body)).map_err(|unread| unread.failure)
}

/// Joins the chunks of a body (RFC 9112 7.1); `None` if it has none, or they do not end.
fn joined(body: &Bytes) -> Option<Bytes> {
    let (mut rest, mut joined) = (&body[..], BytesMut::new());
    loop {
        let Ok(Status::Complete((start, length))) = httparse::parse_chunk_size(rest) else { return None };
        let length = usize::try_from(length).ok()?;
        if length == 0 {
            return Some(joined.freeze());
        }
        rest = rest.get(start..)?;
        joined.extend_from_slice(rest.get(..length)?);
        rest = rest[length..].strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    async fn read(message: &[u8]) -> Result<(u16, Headers, Bytes), Failure> {
        read_archived(Bytes::copy_from_slice(message), 100, &MemoryBudget::new(1 << 20)).await
    }

    #[tokio::test]
    async fn a_body_is_read_whatever_codings_it_was_sent_in() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(b"<p>Hat</p>").unwrap();
        let packed = packed.finish().unwrap();
        let (first, second) = packed.split_at(7);
        let chunk = |part: &[u8]| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
        let chunks = [chunk(first), chunk(second), chunk(b"")].concat();
        for (fields, body) in [
            ("Content-Length: 7", &b"<p>Hat</p>"[..]),
            ("Content-Encoding: gzip", &packed),
            ("Content-Encoding: gzip\r\nTransfer-Encoding: chunked", &chunks),
            // The chunks are undone.
            ("Transfer-Encoding: chunked", b"<p>Hat</p>"),
        ] {
            let head = format!("HTTP/1.1 200 \r\nContent-Type: text/html\r\n{fields}\r\n\r\n");
            let (status, headers, body) = read(&[head.as_bytes(), body].concat()).await.unwrap();
            assert_eq!(
                (status, headers.get("content-type"), &body[..]),
                (200, Some("text/html"), &b"<p>Hat</p>"[..])
            );
        }
    }

    #[tokio::test]
    async fn what_is_no_response_or_too_large_fails() {
        let large = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &[b'x'; 101]].concat();
        for (message, class) in [
            (&b""[..], Class::Http),
            (b"HTTP/1.1 200 OK\r\nA: b", Class::Http),
            (b"GET / HTTP/1.1\r\n\r\n", Class::Http),
            (b"HTTP/1.1 099 ?\r\n\r\n", Class::Http),
            (&large, Class::Size),
        ] {
            assert_eq!(read(message).await.unwrap_err().class, class, "{}", String::from_utf8_lossy(message));
        }
    }
}
