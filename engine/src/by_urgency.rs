//! What is claimed and waits to be handed out, the urgent first.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use trawl_common::ports::Claimed;

/// The URLs that are claimed and not handed out yet, the urgent ones first. There are no more than the broker sends ahead.
pub(crate) struct ByUrgency {
    arriving: mpsc::UnboundedReceiver<Claimed>,
    /// What comes back from the ladder, the priority lane, the bulk lane.
    waiting: [VecDeque<Claimed>; 3],
}

impl ByUrgency {
    /// Sorts what arrives.
    pub(crate) fn new(arriving: mpsc::UnboundedReceiver<Claimed>) -> Self {
        Self { arriving, waiting: Default::default() }
    }

    /// The next URLs, between one and `most`; waits for them, for ever if none can come any more. Cancelling the call loses nothing.
    pub(crate) async fn next(&mut self, most: usize) -> Vec<Claimed> {
        self.sort();
        if self.waiting.iter().all(VecDeque::is_empty) {
            match self.arriving.recv().await {
                Some(claimed) => self.push(claimed),
                None => std::future::pending().await,
            }
            self.sort();
        }
        let mut next = Vec::with_capacity(most.min(64));
        for lane in &mut self.waiting {
            let room = lane.len().min(most - next.len());
            next.extend(lane.drain(..room));
        }
        next
    }

    fn sort(&mut self) {
        while let Ok(claimed) = self.arriving.try_recv() {
            self.push(claimed);
        }
    }

    fn push(&mut self, claimed: Claimed) {
        let comes_back = claimed.message.until.is_some();
        let lane = if comes_back { 0 } else { 1 + claimed.message.lane as usize };
        self.waiting[lane].push_back(claimed);
    }
}
