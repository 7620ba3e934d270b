//! What is stored and cannot be read, where it stays as it is and everything else goes on.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tracing::error;
use trawl_common::ports::{ErrorKind, Result};

/// Of so many it is remembered that they were named.
const NAMED: usize = 10_000;

/// Names each in the log once.
#[derive(Default)]
pub(crate) struct LeftOut {
    named: Mutex<HashSet<String>>,
}

impl LeftOut {
    /// What was read; nothing, where it cannot be.
    pub(crate) fn unless_corrupt<T>(&self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
                if named.len() < NAMED && named.insert(error.to_string()) {
                    error!(%error, "left alone until it is set right");
                }
                Ok(None)
            }
            read => read.map(Some),
        }
    }
}
