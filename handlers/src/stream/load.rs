//! The number of requests that a program has not answered.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of unanswered requests, and the lowest one since it was last asked for.
#[derive(Debug, Default)]
pub(super) struct Load {
    now: AtomicUsize,
    least: AtomicUsize,
}

/// An unanswered request, until it is dropped.
pub(super) struct Unanswered<'a>(&'a Load);

impl Load {
    pub(super) fn begin(&self) -> Unanswered<'_> {
        self.now.fetch_add(1, Ordering::Relaxed);
        Unanswered(self)
    }

    /// Returns the lowest number since the last call.
    pub(super) fn take_least(&self) -> usize {
        self.least.swap(self.now.load(Ordering::Relaxed), Ordering::Relaxed)
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let before = self.0.now.fetch_sub(1, Ordering::Relaxed);
        self.0.least.fetch_min(before.saturating_sub(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_has_answered_all_in_between_is_not_behind() {
        let load = Load::default();
        let all: Vec<_> = (0..5).map(|_| load.begin()).collect();
        assert_eq!((load.take_least(), load.take_least()), (0, 5));
        let mut all = all.into_iter();
        drop((all.next(), load.begin()));
        assert_eq!(load.take_least(), 4);
        drop(all);
        let _next = load.begin();
        assert_eq!((load.take_least(), load.take_least()), (0, 1));
    }
}
