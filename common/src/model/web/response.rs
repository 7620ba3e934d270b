//! A response as fetched.

use std::net::IpAddr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::base64;
use crate::recorded;
use crate::time::UnixMs;
use crate::web::headers::Headers;
use crate::web::sniff::content_type;
use crate::web::url::CanonicalUrl;

/// A response as fetched, with the content codings of its body undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Its header fields.
    pub headers: Headers,
    /// The final URL after redirects, if that differs from the requested one.
    #[serde(with = "recorded::option")]
    pub redirected_to: Option<CanonicalUrl>,
    /// When it arrived; [`Response::UNKNOWN`] if another program keeps it.
    pub fetched_at: UnixMs,
    /// The address of the server, if known: not behind a proxy.
    pub address: Option<IpAddr>,
    /// The body.
    #[serde(with = "base64")]
    pub body: Bytes,
}

impl Response {
    /// The arrival of a response whose time nobody knows: before any crawl.
    pub const UNKNOWN: UnixMs = UnixMs(0);

    /// The `Content-Type` as sent; of several, the one that counts.
    pub fn content_type(&self) -> Option<&str> {
        content_type(self.headers.all("content-type"))
    }
}
