//! One worker's memory: what it was sent, what waits in it, what runs. `trawl-worker`'s `intake` and `launch`.

use std::collections::VecDeque;

use trawl_common::time::UnixMs;

use super::broker::{Line, Message};

/// Messages and jobs in one worker.
pub(super) struct Worker {
    /// Deliveries that its intake has not taken.
    pub(super) inbox: [VecDeque<Message>; 2],
    /// How many wait for a slot that is near.
    pub(super) aside: usize,
    /// Those of them whose slot has come.
    pub(super) up: VecDeque<Message>,
    /// Jobs whose slot had passed before they could start.
    pub(super) missed: VecDeque<Message>,
    /// What the intake is busy with.
    pub(super) batch: Vec<Message>,
    /// What has become of that, as far as it is not handed on.
    pub(super) turns: VecDeque<(Message, Turn)>,
    /// Jobs whose turn it is, and until when their slot is good.
    pub(super) ready: VecDeque<(Message, u64)>,
    /// Fetch slots that are free.
    pub(super) free: usize,
}

/// When a job's turn is.
#[derive(Clone, Copy)]
pub(super) enum Turn {
    /// Now, and the slot is good until then.
    Now { void_after: u64 },
    /// At a reserved instant, so many microseconds from when that was said.
    At { wait: u64, slot: UnixMs },
    /// To be asked for again then.
    Later { until: UnixMs, turn: Option<(UnixMs, u8)> },
    /// Never: its time is over.
    Expired,
}

impl Worker {
    /// With nothing to do.
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            inbox: Default::default(),
            aside: 0,
            up: VecDeque::new(),
            missed: VecDeque::new(),
            batch: Vec::new(),
            turns: VecDeque::new(),
            ready: VecDeque::new(),
            free: concurrency,
        }
    }

    /// Takes the next batch, unless the intake is busy: those whose slot has come, else those that missed theirs, else
    /// deliveries, at most `most`. Returns how many it takes.
    pub(super) fn take(&mut self, most: usize) -> usize {
        if !self.batch.is_empty() || !self.turns.is_empty() {
            return 0;
        }
        if !self.up.is_empty() {
            self.aside -= self.up.len();
            self.batch.extend(self.up.drain(..));
        } else if !self.missed.is_empty() {
            self.batch.extend(self.missed.drain(..));
        } else {
            for line in [Line::Due, Line::Bulk] {
                let inbox = &mut self.inbox[line as usize];
                let count = inbox.len().min(most - self.batch.len());
                self.batch.extend(inbox.drain(..count));
            }
        }
        self.batch.len()
    }
}
