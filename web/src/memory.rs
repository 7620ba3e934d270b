//! The memory that all pages in progress may take together.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of accounting in bytes.
const UNIT: u64 = 1024;

/// A number of bytes shared by many users. A user waits until enough bytes are free; waiting users are served in order.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    free: Arc<Semaphore>,
    units: u32,
}

impl MemoryBudget {
    /// Creates a budget of `bytes`, rounded up to KiB.
    pub fn new(bytes: u64) -> Self {
        let units = units(bytes).max(1);
        Self { free: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// Waits for `bytes` of the budget, or for all of it if it is smaller. Waiting for more while holding a share can
    /// deadlock.
    pub async fn take(&self, bytes: u64) -> MemoryShare {
        let units = units(bytes).min(self.units);
        // The semaphore is never closed.
        MemoryShare(Arc::clone(&self.free).acquire_many_owned(units).await.ok())
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Bytes of a [`MemoryBudget`], freed when this is dropped.
#[derive(Debug)]
pub struct MemoryShare(Option<OwnedSemaphorePermit>);

impl MemoryShare {
    /// Wraps `bytes` so that they hold their part of this share until the last clone is dropped. Frees the rest now.
    pub(super) fn hold(mut self, mut bytes: Vec<u8>) -> Bytes {
        bytes.shrink_to_fit();
        let kept = units(bytes.len() as u64) as usize;
        if let Some(permit) = &mut self.0 {
            permit.split(permit.num_permits().saturating_sub(kept));
        }
        Bytes::from_owner(Held { bytes, _share: self })
    }
}

struct Held {
    bytes: Vec<u8>,
    _share: MemoryShare,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_needs_memory_waits_until_the_last_clone_of_what_holds_it_is_gone() {
        let budget = MemoryBudget::new(100 * UNIT);
        let body = budget.take(100 * UNIT).await.hold(vec![7; 60 * UNIT as usize]);
        assert!(budget.take(40 * UNIT).now_or_never().is_some(), "what the body does not need is free");
        assert!(budget.take(41 * UNIT).now_or_never().is_none());
        let clone = body.slice(5..6);
        drop(body);
        assert!(budget.take(41 * UNIT).now_or_never().is_none());
        drop(clone);
        assert!(budget.take(100 * UNIT).now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_needs_more_than_there_is_takes_all() {
        let budget = MemoryBudget::new(UNIT);
        let share = budget.take(u64::MAX).await;
        assert!(budget.take(1).now_or_never().is_none());
        drop(share);
        assert!(budget.take(1).now_or_never().is_some());
    }
}
