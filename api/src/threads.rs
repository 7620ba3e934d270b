//! Work that would hold up other requests.

use std::panic::resume_unwind;

use tokio::task::spawn_blocking;

/// Runs work that may take a while, such as compiling text from strangers, on another thread.
pub(crate) async fn on_a_thread_apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => resume_unwind(panicked.into_panic()),
    }
}
