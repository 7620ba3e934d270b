//! URLs that are due, and the fetch permits that they need.

use std::collections::VecDeque;
use std::sync::Arc;

use trawl_common::politeness::ceiling::Ceiling;
use trawl_common::ports::Fatal;

use super::fetch_permits::FetchPermits;
use crate::claim::Claims;
use crate::claimed::ClaimedUrl;

/// URLs to schedule when there are permits.
pub(super) struct Due {
    pub(super) urls: VecDeque<ClaimedUrl>,
    pub(super) permits: FetchPermits,
}

impl Due {
    pub(super) fn new(permits: usize, ceiling: &Arc<Ceiling>) -> Self {
        Self { urls: VecDeque::new(), permits: FetchPermits::new(permits, Arc::clone(ceiling)) }
    }

    /// Waits for permits. Returns as many URLs: those that are due, or, unless `claims` is `None`, newly
    /// claimed ones. `None` when settling has stopped. Cancelling the call loses nothing.
    pub(super) async fn next(
        &mut self,
        claims: Option<&mut Claims>,
    ) -> Result<Option<Vec<ClaimedUrl>>, Fatal> {
        if self.urls.is_empty() && claims.is_none() {
            return std::future::pending().await;
        }
        let most = self.permits.some().await;
        match claims {
            Some(claims) if self.urls.is_empty() => claims.up_to(most).await,
            _ => Ok(Some(self.urls.drain(..most.min(self.urls.len())).collect())),
        }
    }
}
