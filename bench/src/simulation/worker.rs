//! One worker's memory: what it was sent, what waits in it, what runs. `trawl-worker`'s scheduler.

use std::collections::VecDeque;

use trawl_common::time::UnixMs;

use super::broker::{Message, QueueName};

/// Messages and jobs in one worker.
pub(super) struct Worker {
    /// Deliveries that its scheduler has not taken.
    pub(super) inbox: [VecDeque<Message>; 2],
    /// How many wait for a slot that is near.
    pub(super) aside: usize,
    /// Those of them whose slot has come.
    pub(super) up: VecDeque<Message>,
    /// What the scheduler is busy with.
    pub(super) batch: Vec<Message>,
    /// The decisions on that batch that were not carried out yet.
    pub(super) decided: VecDeque<(Message, Decision)>,
    /// Fetch permits that are free.
    pub(super) free: usize,
}

/// When a job may be sent.
#[derive(Clone, Copy)]
pub(super) enum Decision {
    /// Now.
    Now,
    /// At a reserved instant, so many microseconds from the decision.
    At { wait: u64, slot: UnixMs },
    /// To be asked for again then.
    Later { until: UnixMs, turn: Option<(UnixMs, u8)> },
    /// Never: its deadline has passed.
    Expired,
}

impl Worker {
    /// With nothing to do.
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

    /// Takes the next batch, unless the scheduler is busy: those whose slot has come, else deliveries, at most as many as fetch
    /// permits are free. Returns how many it takes.
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
