//! Threads of their own, for requests whose answers may keep a thread busy.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// By so much these threads are nicer than the others: where both are busy, one of these has about a tenth of the time.
#[cfg(target_os = "linux")]
const NICER: i32 = 10;

/// Threads beside those of the program, which stand back behind them. A client reads on as long as more of an answer's head
/// comes, and a server can go on for ever by interim answers (1xx): here that keeps waiting only what runs on these threads.
#[derive(Clone, Debug)]
pub struct Threads(Arc<Running>);

/// A runtime that may end within another's task.
#[derive(Debug)]
struct Running(Option<Runtime>);

impl Threads {
    /// So many threads. They end with the last clone, and what runs on them then is given up.
    pub fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(number)
            .thread_name("fetch")
            .on_thread_start(stand_back)
            .enable_all()
            .build()?;
        Ok(Self(Arc::new(Running(Some(runtime)))))
    }

    /// How late they do what is due after `time`.
    pub async fn lag(&self, time: Duration) -> Duration {
        let begun = Instant::now();
        // A timer belongs to the runtime that it is made on.
        self.run(async move { sleep(time).await }).await;
        begun.elapsed().saturating_sub(time)
    }

    /// Runs `call` on them. What it opens is theirs: a connection is read there as long as it lasts. A panic is the caller's.
    pub(super) async fn run<T: Send + 'static>(&self, call: impl Future<Output = T> + Send + 'static) -> T {
        let Some(runtime) = &self.0.0 else { return std::future::pending().await };
        match AbortOnDropHandle::new(runtime.spawn(call)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // They have ended, and what asks with them.
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

/// Gives this thread a lower priority, where the system has priorities of single threads.
fn stand_back() {
    #[cfg(target_os = "linux")]
    if let Ok(nice) = rustix::process::getpriority_process(None) {
        // The system sees to the limit.
        let _ = rustix::process::setpriority_process(None, nice + NICER);
    }
}
