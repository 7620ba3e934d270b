//! The reason why a program is given nothing for a while.

use parking_lot::Mutex;
use tokio::time::Instant;

/// The reason why a program cannot be started, or ends before it is given anything, and when it is tried again.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<Option<(Instant, String)>>);

impl Trouble {
    /// Returns the reason why the program is given nothing now.
    pub(super) fn now(&self) -> Option<String> {
        self.0.lock().as_ref().filter(|(until, _)| *until > Instant::now()).map(|(_, why)| why.clone())
    }

    pub(super) fn begin(&self, until: Instant, why: String) {
        *self.0.lock() = Some((until, why));
    }
}
