//! The response cache in memory.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use moka::Expiry;
use moka::sync::Cache as Moka;
use trawl_common::ports::{Cache, Result};
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

/// Maximum weight of all responses together, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum size of a body that is cached, in bytes: one must not displace all others.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Cached responses of this process, limited in time and weight.
pub(crate) struct MemoryCache(Moka<CanonicalUrl, Kept>);

#[derive(Clone)]
struct Kept {
    response: Response,
    ttl: Duration,
}

/// The expiry policy: each response has its own time to live.
struct OwnTtl;

impl Expiry<CanonicalUrl, Kept> for OwnTtl {
    fn expire_after_create(&self, _: &CanonicalUrl, kept: &Kept, _: Instant) -> Option<Duration> {
        Some(kept.ttl)
    }

    fn expire_after_update(
        &self,
        _: &CanonicalUrl,
        kept: &Kept,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(kept.ttl)
    }
}

impl Default for MemoryCache {
    fn default() -> Self {
        let cache = Moka::builder().max_capacity(MAX_BYTES).weigher(weigh).expire_after(OwnTtl);
        Self(cache.build())
    }
}

/// Returns the bytes of text and body, plus a flat amount for overhead.
fn weigh(url: &CanonicalUrl, kept: &Kept) -> u32 {
    let response = &kept.response;
    let headers: usize = response.headers.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
    let bytes = 256 + url.as_str().len() + headers + response.body.len();
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[async_trait]
impl Cache for MemoryCache {
    async fn get(&self, url: &CanonicalUrl) -> Result<Option<Response>> {
        Ok(self.0.get(url).map(|kept| kept.response))
    }

    async fn put(&self, url: &CanonicalUrl, response: &Response, ttl: Duration) -> Result<()> {
        if response.body.len() <= MAX_BODY_BYTES {
            // A body may be a slice of a much larger read buffer, which it would keep in memory.
            let body = Bytes::copy_from_slice(&response.body);
            self.0.insert(url.clone(), Kept { response: Response { body, ..response.clone() }, ttl });
        }
        Ok(())
    }
}
