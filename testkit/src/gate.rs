//! Holds the requests of a site back.

use tokio::sync::watch;

/// Counts requests, and lets only the first ones through. It is open at first.
pub struct Gate {
    count: watch::Sender<usize>,
    open: watch::Sender<usize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { count: watch::Sender::new(0), open: watch::Sender::new(usize::MAX) }
    }
}

impl Gate {
    /// Answers no more requests than this until [`answer_all`](Self::answer_all).
    pub fn hold_after(&self, count: usize) {
        self.open.send_replace(count);
    }

    /// Answers all requests.
    pub fn answer_all(&self) {
        self.open.send_replace(usize::MAX);
    }

    /// Waits until there were this many requests.
    pub async fn asked_for(&self, count: usize) {
        let _ = self.count.subscribe().wait_for(|asked| *asked >= count).await;
    }

    /// Counts a request, and waits until it may be answered.
    pub(crate) async fn pass(&self) {
        let mut number = 0;
        self.count.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        // The sender lives as long as the gate.
        let _ = self.open.subscribe().wait_for(|open| number <= *open).await;
    }
}
