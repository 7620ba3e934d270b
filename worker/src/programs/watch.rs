//! The work that programs are doing for this worker, and whether it still belongs to the worker: its crawl
//! may be cancelled, or another worker may have it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::message::Message;
use trawl_common::health::Health;
use trawl_common::ports::{Fatal, Frontier};
use trawl_common::time::UnixMs;

/// Interval within which the program of a cancelled task is ended.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of tasks to report.
const MAX_REPORTED: usize = 200;

/// The URLs and tasks that programs are working on.
#[derive(Default)]
pub(crate) struct Watch {
    watched: Mutex<HashMap<u64, Busy>>,
    next: AtomicU64,
}

/// One URL or task that a program is working on.
struct Busy {
    message: Message,
    since: UnixMs,
    /// Cancelled when it no longer belongs to this worker.
    lost: CancellationToken,
}

impl Watch {
    /// Watches a URL or a task that a program starts, until the returned value is dropped.
    pub(crate) fn over(&self, message: &Message) -> Watched<'_> {
        let (number, lost) = (self.next.fetch_add(1, Ordering::Relaxed), CancellationToken::new());
        let busy = Busy { message: message.clone(), since: UnixMs::now(), lost: lost.clone() };
        self.watched.lock().insert(number, busy);
        Watched { watch: self, number, lost }
    }

    /// Returns the tasks that programs are running with the time that each started; only some of them if
    /// there are many.
    pub(crate) fn tasks(&self) -> BTreeMap<String, UnixMs> {
        let watched = self.watched.lock();
        let tasks =
            watched.values().filter_map(|busy| Some((busy.message.work.task()?.key.to_string(), busy.since)));
        tasks.take(MAX_REPORTED).collect()
    }

    /// Ends programs whose tasks are no longer this worker's, until the future is dropped.
    pub(crate) async fn run(self: Arc<Self>, frontier: Arc<dyn Frontier>, health: Arc<Health>) {
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.look(&*frontier).await {
                return health.abort(error);
            }
        }
    }

    /// Checks which of them no longer belong to this worker.
    async fn look(&self, frontier: &dyn Frontier) -> Result<(), Fatal> {
        let watched: Vec<(Message, CancellationToken)> =
            self.watched.lock().values().map(|busy| (busy.message.clone(), busy.lost.clone())).collect();
        if watched.is_empty() {
            return Ok(());
        }
        let messages: Vec<&Message> = watched.iter().map(|(message, _)| message).collect();
        let held = frontier.extend(&messages).await?;
        for ((_, lost), is_held) in watched.iter().zip(held) {
            if !is_held {
                lost.cancel();
            }
        }
        Ok(())
    }
}

/// A watched URL or task.
pub(crate) struct Watched<'a> {
    watch: &'a Watch,
    number: u64,
    lost: CancellationToken,
}

impl Watched<'_> {
    /// Waits until it no longer belongs to this worker.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.watch.watched.lock().remove(&self.number);
    }
}
