//! Stored entries that cannot be read: each stays as it is, and everything else goes on.

use std::collections::HashSet;

use parking_lot::Mutex;
use tracing::error;
use trawl_common::ports::{ErrorKind, Result};

/// Maximum number of entries remembered as logged.
const MAX_REMEMBERED: usize = 10_000;

/// Logs each such entry once.
#[derive(Default)]
pub(crate) struct LeftOut {
    named: Mutex<HashSet<String>>,
}

impl LeftOut {
    /// Returns the entry that was read; `None` if it is unreadable.
    pub(crate) fn unless_corrupt<T>(&self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                let mut named = self.named.lock();
                if named.len() < MAX_REMEMBERED && named.insert(error.to_string()) {
                    error!(%error, "left alone until it is set right");
                }
                Ok(None)
            }
            read => read.map(Some),
        }
    }
}
