//! Jobs that are due, and the fetch permits that they need.

use std::collections::VecDeque;
use std::sync::Arc;

use trawl_common::politeness::ceiling::Ceiling;
use trawl_common::ports::Fatal;

use super::fetch_permits::FetchPermits;
use crate::claim::Claims;
use crate::job::ClaimedUrl;

/// Jobs to schedule when there are permits.
pub(super) struct Due {
    pub(super) jobs: VecDeque<ClaimedUrl>,
    pub(super) permits: FetchPermits,
}

impl Due {
    pub(super) fn new(permits: usize, ceiling: &Arc<Ceiling>) -> Self {
        Self { jobs: VecDeque::new(), permits: FetchPermits::new(permits, Arc::clone(ceiling)) }
    }

    /// Waits for permits. Returns as many jobs: those that are due, or, unless `claimed` is `None`, newly
    /// claimed ones. `None` when settling has stopped. Cancelling the call loses nothing.
    pub(super) async fn next(
        &mut self,
        claimed: Option<&mut Claims>,
    ) -> Result<Option<Vec<ClaimedUrl>>, Fatal> {
        if self.jobs.is_empty() && claimed.is_none() {
            return std::future::pending().await;
        }
        let most = self.permits.some().await;
        match claimed {
            Some(claimed) if self.jobs.is_empty() => claimed.up_to(most).await,
            _ => Ok(Some(self.jobs.drain(..most.min(self.jobs.len())).collect())),
        }
    }
}
