//! The pause of a worker whose machine lacks resources.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time for which no URLs are claimed or started when this machine lacks something.
const CLAIM_PAUSE: Duration = Duration::from_millis(250);

/// The end of the pause that began when the machine last lacked something.
#[derive(Debug, Default)]
pub(crate) struct Wanting(Mutex<Option<Instant>>);

impl Wanting {
    pub(crate) fn for_a_while(&self) {
        *self.0.lock() = Some(Instant::now() + CLAIM_PAUSE);
    }

    /// The end of the pause, if it is not over.
    pub(crate) fn until(&self) -> Option<Instant> {
        let until = *self.0.lock();
        until.filter(|&until| until > Instant::now())
    }
}
