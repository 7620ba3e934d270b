//! Trying again until it works: servers come back.

use std::time::Duration;

use tracing::{info, warn};
use trawl_common::ports::Result;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);

/// A growing pause with jitter, so that a fleet does not knock in step.
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// Waits, longer each time.
    pub(crate) async fn pause(&mut self) {
        let jitter = 0.5 + rand::random::<f64>() / 2.0;
        tokio::time::sleep(self.next.mul_f64(jitter)).await;
        self.next = (self.next * 2).min(LONGEST);
    }
}

/// Repeats `call`, which is idempotent, until it succeeds. Says once that it fails, and once that it works again.
pub(crate) async fn until_done<T, F: Future<Output = Result<T>>>(what: &str, call: impl Fn() -> F) -> T {
    let mut backoff = Backoff::default();
    let mut failed = false;
    loop {
        match call().await {
            Ok(value) => {
                if failed {
                    info!(what, "works again");
                }
                return value;
            }
            Err(error) if !failed => {
                warn!(what, %error, "failed; trying until it works");
                failed = true;
            }
            Err(_) => {}
        }
        backoff.pause().await;
    }
}
