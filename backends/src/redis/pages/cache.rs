//! Cached responses: `content:<url>`, one line of JSON with status and headers, then the body, as zstd or uncompressed.
//! A text without such a line is a page that another program has stored.

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trawl_common::ports::{Cache, Error, ErrorKind, Result};
use trawl_common::settings::Encoding;
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use zstd::bulk::Compressor;

use crate::redis::pages::budget::Budget;
use crate::redis::{Link, failed, keys};

/// The cheapest level: a response lives for a minute.
const LEVEL: i32 = 1;

/// The largest body that is kept.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// Prefix of each head.
const HEAD: &[u8] = br#"{"status":"#;

/// Maximum size of a value, including the head of the response.
const MAX_STORED: usize = 2 * MAX_BODY;

/// A response cache on Redis.
pub struct RedisCache {
    redis: Link,
    encoding: Encoding,
    budget: Option<Budget>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    status: u16,
    #[serde(default)]
    headers: Headers,
    redirected_to: Option<String>,
    fetched_at: UnixMs,
    address: Option<IpAddr>,
    length: usize,
    /// Compressed if absent. An entry is read as it was written, whatever the settings say now.
    #[serde(default)]
    encoding: Encoding,
}

impl RedisCache {
    /// Creates a cache on this connection that stores responses in this encoding.
    pub fn new(redis: Link, encoding: Encoding) -> Self {
        Self { redis, encoding, budget: None }
    }

    /// Limits the size of all responses together to `bytes`, for a server that evicts nothing by itself.
    #[must_use]
    pub fn within(self, bytes: u64) -> Self {
        Self { budget: Some(Budget::for_responses(bytes)), ..self }
    }
}

#[async_trait]
impl Cache for RedisCache {
    async fn get(&self, url: &CanonicalUrl) -> Result<Option<Response>> {
        let stored = self.redis.value(&keys::content(url), MAX_STORED).await?;
        stored.map(|bytes| decode(&bytes)).transpose()
    }

    async fn put(&self, url: &CanonicalUrl, response: &Response, ttl: Duration) -> Result<()> {
        if response.body.len() > MAX_BODY {
            return Ok(());
        }
        let (key, value) = (keys::content(url), encode(response, self.encoding)?);
        if value.len() > MAX_STORED {
            return Ok(());
        }
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(&value).arg("PX").arg(ttl.as_millis() as u64);
        let () = set.query_async(&mut self.redis.clone()).await.map_err(failed)?;
        let Some(budget) = &self.budget else { return Ok(()) };
        budget.spend(&self.redis, key, value.len(), ttl).await.map_err(failed)
    }
}

fn encode(response: &Response, encoding: Encoding) -> Result<Vec<u8>> {
    let head = Head {
        status: response.status,
        headers: response.headers.clone(),
        redirected_to: response.redirected_to.as_ref().map(ToString::to_string),
        fetched_at: response.fetched_at,
        address: response.address,
        length: response.body.len(),
        encoding,
    };
    let mut bytes = serde_json::to_vec(&head).map_err(corrupt)?;
    bytes.push(b'\n');
    match encoding {
        Encoding::Plain => bytes.extend_from_slice(&response.body),
        Encoding::Zstd => bytes.extend(compress(&response.body).map_err(corrupt)?),
    }
    Ok(bytes)
}

/// Compresses a body. Creating a compressor takes half as long as compressing a page, so each thread keeps one.
fn compress(body: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    }
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::new(LEVEL)?),
        };
        compressor.compress(body)
    })
}

/// Decodes an entry. Without a head, it is the text of a page, as stored by other programs that publish URLs beside
/// trawl.
fn decode(bytes: &[u8]) -> Result<Response> {
    if !bytes.starts_with(HEAD) {
        return foreign(bytes);
    }
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(|| corrupt("no head"))?;
    let (head, body) = bytes.split_at(end);
    let head: Head = serde_json::from_slice(head).map_err(corrupt)?;
    if head.length > MAX_BODY {
        return Err(corrupt("a body larger than any that is kept"));
    }
    let body = match head.encoding {
        Encoding::Plain => body[1..].to_vec(),
        Encoding::Zstd => zstd::bulk::decompress(&body[1..], head.length).map_err(corrupt)?,
    };
    let redirected_to = head.redirected_to.as_deref().map(|url| url.parse()).transpose().map_err(corrupt)?;
    let Head { status, headers, fetched_at, address, .. } = head;
    Ok(Response { status, headers, redirected_to, fetched_at, address, body: Bytes::from(body) })
}

fn foreign(bytes: &[u8]) -> Result<Response> {
    let text = std::str::from_utf8(bytes).map_err(corrupt)?;
    let kind = match text.trim_start().as_bytes().first() {
        None => return Err(corrupt("nothing")),
        Some(b'{' | b'[') => "application/json",
        Some(_) => "text/html; charset=utf-8",
    };
    Ok(Response {
        status: 200,
        headers: Headers::from_iter([("content-type".to_owned(), kind.to_owned())]),
        redirected_to: None,
        fetched_at: Response::UNKNOWN,
        address: None,
        body: Bytes::copy_from_slice(bytes),
    })
}

fn corrupt(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("cached response: {error}"))
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::Recrawl;

    use super::*;

    #[test]
    fn a_page_that_another_program_keeps_is_read_as_one() {
        let page = decode("<title>é</title>".as_bytes()).unwrap();
        assert_eq!((page.status, &page.body[..]), (200, "<title>é</title>".as_bytes()));
        let now = UnixMs::now();
        let uses = |recrawl: Recrawl| recrawl.may_use_cached(page.fetched_at, UnixMs(1), now);
        assert!(uses(Recrawl::Never), "nobody knows when it was fetched");
        for recrawl in [Recrawl::Always, Recrawl::Changed, Recrawl::Age(Duration::from_secs(3600))] {
            assert!(!uses(recrawl), "{recrawl:?}");
        }
        assert_eq!(
            decode(b" {\"a\": 1}").unwrap().headers,
            [("content-type", "application/json")]
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        );
        for nothing in [&b""[..], b"  ", b"\xff\xfe", b"{\"status\":200}"] {
            assert_eq!(decode(nothing).unwrap_err().kind, ErrorKind::Corrupt);
        }
    }
}
