//! The state of one worker: its deliveries, waiting messages and running fetches. Models `trawl-worker`'s scheduler.

use std::collections::VecDeque;

use trawl_common::time::UnixMs;

use super::broker::{Message, QueueName};

/// The messages and jobs of one worker.
pub(super) struct Worker {
    /// Deliveries that its scheduler has not taken, by queue.
    pub(super) inbox: [VecDeque<Message>; 2],
    /// Number of messages that wait for a slot that is near.
    pub(super) aside: usize,
    /// Messages among them whose slot has come.
    pub(super) up: VecDeque<Message>,
    /// The batch that the scheduler is busy with.
    pub(super) batch: Vec<Message>,
    /// Decisions on that batch that are not carried out yet.
    pub(super) decided: VecDeque<(Message, Decision)>,
    /// Number of free fetch permits.
    pub(super) free: usize,
}

/// When a URL may be fetched.
#[derive(Clone, Copy)]
pub(super) enum Decision {
    /// Now.
    Now,
    /// At a reserved slot, `wait` microseconds after the decision.
    At { wait: u64, slot: UnixMs },
    /// No slot yet: to be requested again at `until`.
    Later { until: UnixMs, turn: Option<(UnixMs, u8)> },
    /// Never: its deadline has passed.
    Expired,
}

impl Worker {
    /// Returns a worker with nothing to do.
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            inbox: Default::default(),
            aside: 0,
            up: VecDeque::new(),
            batch: Vec::new(),
            decided: VecDeque::new(),
            free: concurrency,
        }
    }

    /// Takes the next batch, unless the scheduler is busy: messages whose slot has come, else deliveries, at most as
    /// many as fetch permits are free. Returns the number taken.
    pub(super) fn take(&mut self) -> usize {
        let most = self.free;
        if !self.batch.is_empty() || !self.decided.is_empty() {
            return 0;
        }
        if !self.up.is_empty() {
            let count = self.up.len().min(most);
            self.aside -= count;
            self.batch.extend(self.up.drain(..count));
        } else {
            for queue in [QueueName::Due, QueueName::Bulk] {
                let inbox = &mut self.inbox[queue as usize];
                let count = inbox.len().min(most - self.batch.len());
                self.batch.extend(inbox.drain(..count));
            }
        }
        self.batch.len()
    }
}
