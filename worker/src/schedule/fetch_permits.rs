//! Fetch permits, which limit the number of pages that a worker fetches at once, and starts per second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use trawl_common::politeness::ceiling::Ceiling;

/// The time that the first permit of a batch waits for others. A page takes far longer.
const BATCH_WAIT: Duration = Duration::from_millis(5);

/// Permits older than this have outlived the burst of the ceiling.
const MAX_AGE: Duration = Duration::from_millis(50);

/// The permits of a worker. One is taken before a host is asked for a slot, so that no slot passes while its
/// URL waits.
pub(super) struct FetchPermits {
    all: Arc<Semaphore>,
    ceiling: Arc<Ceiling>,
    /// The permits at hand, each with the instant at which it was acquired.
    spare: Vec<(Instant, OwnedSemaphorePermit)>,
    /// The number of permits that are best used together, so that one call to the servers is for several
    /// pages: an eighth.
    batch: usize,
}

impl FetchPermits {
    /// Returns `count` permits, which are issued no faster than the ceiling lets pages start.
    pub(super) fn new(count: usize, ceiling: Arc<Ceiling>) -> Self {
        let all = Arc::new(Semaphore::new(count));
        Self { all, ceiling, spare: Vec::new(), batch: count.div_ceil(8) }
    }

    /// Waits for a permit, and briefly for more. Returns the number at hand. Cancelling the call loses none.
    pub(super) async fn some(&mut self) -> usize {
        if self.spare.is_empty() {
            let permit = acquire(&self.all, &self.ceiling).await;
            self.spare.push((Instant::now(), permit));
        }
        let until = self.spare[0].0 + BATCH_WAIT;
        let most = self.ceiling.at_once();
        while self.spare.len() < self.batch.min(most) {
            let Ok(permit) = timeout_at(until, acquire(&self.all, &self.ceiling)).await else { break };
            self.spare.push((Instant::now(), permit));
        }
        while self.spare.len() < most && self.acquire_now() {}
        self.spare.len()
    }

    /// Takes a permit, if one is at hand or free.
    pub(super) fn take(&mut self) -> Option<OwnedSemaphorePermit> {
        if self.spare.is_empty() {
            self.acquire_now();
        }
        let (since, permit) = self.spare.pop()?;
        if since.elapsed() > MAX_AGE {
            // The page starts now, so it counts towards the ceiling now.
            self.ceiling.try_pass();
        }
        Some(permit)
    }

    /// Gives back a permit with which no page has started.
    pub(super) fn give_back(&mut self, permit: OwnedSemaphorePermit) {
        self.spare.push((Instant::now(), permit));
    }

    fn acquire_now(&mut self) -> bool {
        let Ok(permit) = Arc::clone(&self.all).try_acquire_owned() else { return false };
        let may_begin = self.ceiling.try_pass();
        if may_begin {
            self.spare.push((Instant::now(), permit));
        }
        may_begin
    }
}

async fn acquire(all: &Arc<Semaphore>, ceiling: &Ceiling) -> OwnedSemaphorePermit {
    let Ok(permit) = Arc::clone(all).acquire_owned().await else {
        unreachable!("the semaphore is never closed")
    };
    ceiling.wait().await;
    permit
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn permits_that_come_free_within_a_moment_are_used_together() {
        let mut permits = FetchPermits::new(32, Arc::default());
        assert_eq!(permits.some().await, 32);
        let mut used: Vec<_> = std::iter::from_fn(|| permits.take()).collect();
        assert!(permits.some().now_or_never().is_none());
        used.pop();
        let freeing = async {
            tokio::time::sleep(BATCH_WAIT / 2).await;
            used.truncate(28);
        };
        let (some, ()) = tokio::join!(permits.some(), freeing);
        assert_eq!(some, 4, "an eighth is enough");
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_does_not_wait_for_others_for_longer_than_a_moment() {
        let mut permits = FetchPermits::new(32, Arc::default());
        permits.some().await;
        let mut used: Vec<_> = std::iter::from_fn(|| permits.take()).collect();
        used.pop();
        let begun = Instant::now();
        assert_eq!(permits.some().await, 1);
        assert!(begun.elapsed() <= BATCH_WAIT * 2);
    }

    #[tokio::test]
    async fn no_more_permits_are_kept_at_hand_than_the_ceiling_lets_begin_at_once() {
        let ceiling = Arc::new(Ceiling::new("1/h".parse().unwrap()));
        let mut permits = FetchPermits::new(8, ceiling);
        assert_eq!(permits.some().await, 1);
        let permit = permits.take().unwrap();
        assert!(permits.take().is_none());
        permits.give_back(permit);
        assert!(permits.take().is_some() && permits.take().is_none());
    }
}
