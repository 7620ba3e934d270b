//! What programs are doing for this worker, and what of it is not to be done any more: its crawl was cancelled, or another worker has it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use trawl_common::frontier::message::Message;
use trawl_common::ports::Frontier;

/// The URLs and tasks that programs are busy with.
#[derive(Default)]
pub(crate) struct Watch {
    watched: Mutex<HashMap<u64, (Message, CancellationToken)>>,
    next: AtomicU64,
}

impl Watch {
    /// A program begins with this; it is watched until what this returns is dropped.
    pub(crate) fn over(&self, message: &Message) -> Watched<'_> {
        let (number, lost) = (self.next.fetch_add(1, Ordering::Relaxed), CancellationToken::new());
        self.lock().insert(number, (message.clone(), lost.clone()));
        Watched { watch: self, number, lost }
    }

    /// Finds out what is no longer this worker's.
    pub(crate) async fn look(&self, frontier: &dyn Frontier) {
        let watched: Vec<(Message, CancellationToken)> = self.lock().values().cloned().collect();
        if watched.is_empty() {
            return;
        }
        let messages: Vec<&Message> = watched.iter().map(|(message, _)| message).collect();
        let held = frontier.extend(&messages).await;
        for ((_, lost), is_held) in watched.iter().zip(held) {
            if !is_held {
                lost.cancel();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (Message, CancellationToken)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that a program is busy with.
pub(crate) struct Watched<'a> {
    watch: &'a Watch,
    number: u64,
    lost: CancellationToken,
}

impl Watched<'_> {
    /// Waits until it is no longer this worker's.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.watch.lock().remove(&self.number);
    }
}
