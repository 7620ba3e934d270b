//! Pages that wait for the sinks of a spider.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many pages of a spider wait for its sinks, and since when these have taken none.
#[derive(Default)]
pub(crate) struct SinkBacklog(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    pages: usize,
    since: Option<Instant>,
}

impl SinkBacklog {
    /// A page waits from now on. Said before it is handed on: else many more could begin before anybody has counted it.
    pub(crate) fn add(&self) {
        let mut waiting = self.waiting();
        waiting.pages += 1;
        waiting.since.get_or_insert_with(Instant::now);
    }

    /// So many pages are stored.
    pub(crate) fn take_off(&self, pages: usize) {
        let mut waiting = self.waiting();
        waiting.pages -= pages;
        waiting.since = (waiting.pages > 0).then(Instant::now);
    }

    /// For how long the sinks have taken nothing, where at least `most` pages wait for them.
    pub(crate) fn stuck_for(&self, most: usize) -> Option<Duration> {
        let waiting = self.waiting();
        waiting.since.filter(|_| waiting.pages >= most).map(|since| since.elapsed())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
