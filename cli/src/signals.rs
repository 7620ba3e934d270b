//! Ctrl-C and SIGTERM: the first lets the process finish what it has begun, the second ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use trawl_common::exit::Exit;

/// The signals that this process has received.
#[derive(Clone, Debug)]
pub struct Signals {
    stop: CancellationToken,
    number: Arc<AtomicU8>,
}

impl Signals {
    /// Listens from now on. A second signal ends the process at once, which only loses time.
    pub fn listen() -> std::io::Result<Self> {
        let this = Self { stop: CancellationToken::new(), number: Arc::default() };
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let (signals, this, number) = (signal(kind)?, this.clone(), kind.as_raw_value() as u8);
            tokio::spawn(async move { this.watch(signals, number).await });
        }
        Ok(this)
    }

    /// Returns the token that the first signal cancels.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Returns the exit code for the first signal, or `None` if there was none.
    pub fn exit(&self) -> Option<Exit> {
        match self.number.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Signal(number)),
        }
    }

    async fn watch(&self, mut signals: Signal, number: u8) {
        while signals.recv().await.is_some() {
            if self.stop.is_cancelled() {
                std::process::exit(Exit::Signal(number).code().into());
            }
            self.number.store(number, Ordering::Relaxed);
            self.stop.cancel();
        }
    }
}
