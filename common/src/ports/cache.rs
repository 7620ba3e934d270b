//! The response cache.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use crate::web::response::Response;
use crate::web::url::CanonicalUrl;

/// Stores successful responses for a short time. Best effort: a caller treats an error as a miss.
#[async_trait]
pub trait Cache: Send + Sync {
    /// Returns the response of `url`, if one is stored.
    async fn get(&self, url: &CanonicalUrl) -> Result<Option<Response>>;

    /// Stores `response` for `ttl`.
    async fn put(&self, url: &CanonicalUrl, response: &Response, ttl: Duration) -> Result<()>;
}
