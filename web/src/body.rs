//! Reading a body up to a limit.

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use trawl_common::outcome::{Class, Failure};

use super::failure;

/// The body of `response`, decoded, if it has at most `limit` bytes. What lies beyond is not read, and a
/// body that comes in one piece is not copied.
pub(super) async fn read(response: Response, limit: u64) -> Result<Bytes, Failure> {
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let mut chunks = Chunks { response, limit, read: 0 };
    let Some(first) = chunks.next().await? else { return Ok(Bytes::new()) };
    let Some(second) = chunks.next().await? else { return Ok(first) };
    let mut body = BytesMut::from(first);
    body.extend_from_slice(&second);
    while let Some(chunk) = chunks.next().await? {
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

struct Chunks {
    response: Response,
    limit: u64,
    read: u64,
}

impl Chunks {
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let chunk = self.response.chunk().await.map_err(|error| failure::broken_body(&error))?;
        self.read += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.read > self.limit { Err(too_large(self.limit)) } else { Ok(chunk) }
    }
}

fn too_large(limit: u64) -> Failure {
    Failure::new(Class::Size, format_args!("larger than {limit} bytes (`fetch.max_body`)"))
}
