//! Errors of calls that are made again and again: each outage is told once.

use tracing::{info, warn};
use trawl_common::ports::Result;

/// Whether the last call failed.
#[derive(Default)]
pub(crate) struct Outage(bool);

impl Outage {
    /// What the call for `operation` gave; `None` if it failed, which is told unless the call before failed too.
    pub(crate) fn note<T>(&mut self, operation: &str, result: Result<T>) -> Option<T> {
        let failed_before = std::mem::replace(&mut self.0, result.is_err());
        match result {
            Ok(value) => {
                if failed_before {
                    info!(operation, "goes on");
                }
                Some(value)
            }
            Err(error) => {
                if !failed_before {
                    warn!(operation, %error, "cannot be done just now; tried again until it can");
                }
                None
            }
        }
    }
}
