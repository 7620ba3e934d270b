//! A pause between two tries.

use std::time::Duration;

const MIN_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(10);

/// A growing pause with jitter, so that a fleet does not retry in step.
pub struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: MIN_DELAY }
    }
}

impl Backoff {
    /// Waits, longer each time.
    pub async fn pause(&mut self) {
        let jitter = 0.5 + rand::random::<f64>() / 2.0;
        tokio::time::sleep(self.next.mul_f64(jitter)).await;
        self.next = (self.next * 2).min(MAX_DELAY);
    }
}
