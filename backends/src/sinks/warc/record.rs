//! The records of a WARC file, each one gzip member.

use std::fmt::Write;
use std::io;

use data_encoding::BASE32;
use sha1::{Digest, Sha1};
use trawl_common::frontier::Key;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Exchange, Page};
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use super::super::whole::gzip;

/// The recorded data of one page.
pub(super) struct Capture {
    key: Key,
    url: CanonicalUrl,
    crawl: CrawlRef,
    referrer: Option<CanonicalUrl>,
    items: Vec<String>,
    exchange: Exchange,
}

/// A capture's records.
pub(super) struct Records {
    /// The records before the response: the request and metadata.
    pub(super) before: Vec<u8>,
    /// The response. It comes last, so that the capture ends where the response ends.
    pub(super) response: Vec<u8>,
    /// The digest of its body.
    pub(super) payload_digest: String,
}

/// The record that opens a file, and its id.
pub(super) fn info(filename: &str) -> io::Result<(String, Vec<u8>)> {
    let id = id(filename);
    let block = concat!(
        "software: trawl/",
        env!("CARGO_PKG_VERSION"),
        "\r\nformat: WARC File Format 1.1\r\n",
        "conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
    );
    let mut head = Head::new("warcinfo", &id, &UnixMs::now().to_string());
    head.field("WARC-Filename", filename);
    head.field("Content-Type", "application/warc-fields");
    Ok((id, head.member(&[block.as_bytes()])?))
}

impl Capture {
    /// Returns the size of the response body in bytes.
    pub(super) fn size(&self) -> u64 {
        self.exchange.response.body.len() as u64
    }

    /// Returns the capture of a page if its response was kept, else `None`. A task has none.
    pub(super) fn new(page: &Page) -> Option<Self> {
        Some(Self {
            key: page.key.clone(),
            url: page.key.page()?,
            crawl: page.crawl.clone(),
            referrer: page.referrer.as_ref().and_then(Key::page),
            items: page.items.iter().map(|item| item.id.clone()).collect(),
            exchange: page.exchange.clone()?,
        })
    }

    /// The response.
    pub(super) fn response(&self) -> &Response {
        &self.exchange.response
    }

    /// The final URL of the response.
    pub(super) fn target(&self) -> &CanonicalUrl {
        self.response().redirected_to.as_ref().unwrap_or(&self.url)
    }

    /// The date of the fetch.
    pub(super) fn date(&self) -> String {
        self.response().fetched_at.to_string()
    }

    /// Returns the records of the capture, for a file that begins with the record `info`. The ids of a capture are the
    /// same each time it is recorded.
    pub(super) fn records(&self, info: &str) -> io::Result<Records> {
        let response = self.response_block();
        let body = &self.response().body;
        let payload_digest = digest(&[body]);
        let mut head = self.head("response", info);
        head.field("WARC-Payload-Digest", &payload_digest);
        head.field("Content-Type", "application/http;msgtype=response");
        let response = head.member(&[response.as_bytes(), body])?;

        let mut head = self.head("metadata", info);
        head.field("WARC-Concurrent-To", &self.id("response"));
        head.field("Content-Type", "application/warc-fields");
        let mut before = head.member(&[self.metadata().as_bytes()])?;

        let mut head = self.head("request", info);
        head.field("WARC-Concurrent-To", &self.id("response"));
        head.field("Content-Type", "application/http;msgtype=request");
        before.extend(head.member(&[self.request_block().as_bytes()])?);
        Ok(Records { before, response, payload_digest })
    }

    fn id(&self, kind: &str) -> String {
        id(&format!("{}\n{}\n{}\n{kind}", self.crawl.id, self.url, self.response().fetched_at.0))
    }

    fn head(&self, kind: &str, info: &str) -> Head {
        let mut head = Head::new(kind, &self.id(kind), &self.date());
        head.field("WARC-Target-URI", self.target().as_str());
        head.field("WARC-Warcinfo-ID", info);
        if let Some(address) = self.response().address.filter(|_| kind != "metadata") {
            head.field("WARC-IP-Address", &address.to_string());
        }
        head
    }

    fn request_block(&self) -> String {
        let url = self.target().to_url();
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut block = format!("GET {}{query} HTTP/1.1\r\n", url.path());
        for (name, value) in self.exchange.request.iter() {
            field(&mut block, name, value);
        }
        block.push_str("\r\n");
        block
    }

    /// Returns the response up to its body. The body is kept uncompressed and in one piece, so headers that say
    /// otherwise are renamed.
    fn response_block(&self) -> String {
        let Response { status, headers, body, .. } = self.response();
        let mut block = format!("HTTP/1.1 {status} \r\n");
        for (name, value) in headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("content-length")) {
            match name.to_ascii_lowercase().as_str() {
                "content-encoding" | "transfer-encoding" => {
                    field(&mut block, &format!("X-Archive-Orig-{name}"), value);
                }
                _ => field(&mut block, name, value),
            }
        }
        let length = body.len().to_string();
        if let Some(other) = headers.get("content-length").filter(|other| *other != length) {
            field(&mut block, "X-Archive-Orig-content-length", other);
        }
        field(&mut block, "content-length", &length);
        block.push_str("\r\n");
        block
    }

    fn metadata(&self) -> String {
        let mut block = String::new();
        field(&mut block, "url", self.url.as_str());
        field(&mut block, "crawl", self.crawl.id.as_str());
        field(&mut block, "spider", self.crawl.spider.as_str());
        field(&mut block, "fetched", &self.date());
        if let Some(referrer) = &self.referrer {
            field(&mut block, "via", referrer.as_str());
        }
        for item in &self.items {
            field(&mut block, "item", item);
        }
        let Exchange { depth, data, .. } = &self.exchange;
        field(&mut block, "depth", &depth.to_string());
        if self.key.is_request() {
            field(&mut block, "key", self.key.as_str());
        }
        if let Some(data) = data {
            field(&mut block, "data", &data.to_string());
        }
        block
    }
}

/// The fields of a record.
struct Head(String);

impl Head {
    fn new(kind: &str, id: &str, date: &str) -> Self {
        let mut head = Self("WARC/1.1\r\n".to_owned());
        head.field("WARC-Type", kind);
        head.field("WARC-Record-ID", id);
        head.field("WARC-Date", date);
        head
    }

    fn field(&mut self, name: &str, value: &str) {
        field(&mut self.0, name, value);
    }

    /// Returns the whole record with this block, which may be in parts.
    fn member(mut self, block: &[&[u8]]) -> io::Result<Vec<u8>> {
        self.field("WARC-Block-Digest", &digest(block));
        self.field("Content-Length", &block.iter().map(|part| part.len()).sum::<usize>().to_string());
        let mut record = self.0.into_bytes();
        record.extend_from_slice(b"\r\n");
        for part in block {
            record.extend_from_slice(part);
        }
        record.extend_from_slice(b"\r\n\r\n");
        gzip(&record)
    }
}

/// Adds a header line, whatever the value contains.
fn field(block: &mut String, name: &str, value: &str) {
    let value: String =
        value.chars().map(|c| if matches!(c, '\r' | '\n' | '\0') { ' ' } else { c }).collect();
    let _ = write!(block, "{name}: {value}\r\n");
}

fn digest(parts: &[&[u8]]) -> String {
    let mut sha1 = Sha1::new();
    for part in parts {
        sha1.update(part);
    }
    format!("sha1:{}", BASE32.encode(&sha1.finalize()))
}

/// Returns a UUID (RFC 9562, version 8) derived from a text.
fn id(text: &str) -> String {
    let bits = u128::from_be_bytes(Fingerprint::from_text(text).0);
    let version = 8 << 76;
    let variant = 2 << 62;
    let hex = format!("{:032x}", bits & !(0xf << 76) & !(3 << 62) | version | variant);
    format!("<urn:uuid:{}-{}-{}-{}-{}>", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
