//! Separate threads for requests whose responses may keep a thread busy.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// Added niceness of these threads: where both kinds are busy, one of these gets about a tenth of the time of another.
#[cfg(target_os = "linux")]
const NICER: i32 = 10;

/// Threads beside the program's own, at a lower priority. A client reads as long as more of a response's head arrives,
/// and a server can send interim responses (1xx) forever: then only other work on these threads has to wait.
#[derive(Clone, Debug)]
pub struct Threads(Arc<Running>);

/// A runtime that may be dropped in a task of another runtime.
#[derive(Debug)]
struct Running(Option<Runtime>);

impl Threads {
    /// Starts `number` threads. They end with the last clone, which abandons the calls running on them.
    pub fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(number)
            .thread_name("fetch")
            .on_thread_start(stand_back)
            .enable_all()
            .build()?;
        Ok(Self(Arc::new(Running(Some(runtime)))))
    }

    /// Measures how late a timer of `time` fires on these threads.
    pub async fn lag(&self, time: Duration) -> Duration {
        let begun = Instant::now();
        // A timer belongs to the runtime that it is created on.
        self.run(async move { sleep(time).await }).await;
        begun.elapsed().saturating_sub(time)
    }

    /// Runs `call` on these threads, which then also read the connections it opens. Panics if `call` panics.
    pub(super) async fn run<T: Send + 'static>(&self, call: impl Future<Output = T> + Send + 'static) -> T {
        let Some(runtime) = &self.0.0 else { return std::future::pending().await };
        match AbortOnDropHandle::new(runtime.spawn(call)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The threads have ended, and their callers with them.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of this thread, on systems with priorities per thread.
fn stand_back() {
    #[cfg(target_os = "linux")]
    if let Ok(nice) = rustix::process::getpriority_process(None) {
        // The system caps the value.
        let _ = rustix::process::setpriority_process(None, nice + NICER);
    }
}
