//! Stand-ins for ports that a test needs but does not examine.

use async_trait::async_trait;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::names::SpiderName;
use trawl_common::ports::{LastVisits, PageHistories, Requests, Result, Walk};
use trawl_common::spider::page_history::Visited;
use trawl_common::web::url::CanonicalUrl;

/// Accepts every request unchanged.
pub struct AllRequests;

impl Requests for AllRequests {
    fn check(&self, request: Message) -> std::result::Result<Message, Malformed> {
        Ok(request)
    }
}

/// A page history that remembers nothing.
pub struct NoPages;

#[async_trait]
impl LastVisits for NoPages {
    async fn look(&self, _: &SpiderName, urls: &[CanonicalUrl]) -> Result<Vec<Option<Visited>>> {
        Ok(vec![None; urls.len()])
    }
}

#[async_trait]
impl PageHistories for NoPages {
    async fn know(&self, _: &SpiderName, _: &[(CanonicalUrl, u16)]) -> Result<()> {
        Ok(())
    }

    async fn note(&self, _: &SpiderName, _: &[(CanonicalUrl, Visited)]) -> Result<()> {
        Ok(())
    }

    async fn forget(&self, _: &SpiderName, _: &[CanonicalUrl]) -> Result<()> {
        Ok(())
    }

    async fn walk(&self, _: &SpiderName, _: u64) -> Result<Walk> {
        Ok(Walk::default())
    }
}
