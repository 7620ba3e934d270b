//! What stops a worker: an error of a port that no waiting mends.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;
use trawl_common::ports::Error;

/// The first error that stops this worker.
#[derive(Default)]
pub(crate) struct Broken {
    error: OnceLock<Error>,
    is_set: CancellationToken,
}

impl Broken {
    /// Stops the worker, unless another error does already.
    pub(crate) fn by(&self, error: Error) {
        let _ = self.error.set(error);
        self.is_set.cancel();
    }

    /// Waits for the error that stops the worker.
    pub(crate) async fn error(&self) -> Error {
        self.is_set.cancelled().await;
        match self.error.get() {
            Some(error) => error.clone(),
            None => std::future::pending().await,
        }
    }
}
