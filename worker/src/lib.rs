//! trawl's worker: takes URLs from a queue, fetches them politely, extracts, stores, settles.
//!
//! A URL passes through these, in order, each a file of its own:
//!
//! 1. `intake`: takes messages, hears which are this worker's, and finds each one's turn with its host;
//! 2. `launch`: counts the start, acknowledges early where the lane says so, and runs
//! 3. `process`: response cache or fetch ([`trawl_web`]), then [`extract`];
//! 4. `settle`: stores the item, ends or parks the record, and acknowledges.
//!
//! Beside them, `pulse` shows that the worker lives and sends lost URLs on their way again.

mod backoff;
#[cfg(feature = "cli")]
pub mod cli;
mod intake;
mod job;
mod launch;
mod process;
mod pulse;
mod settle;
mod tally;

pub mod extract;

use std::sync::Arc;

use extract::{BadSelector, Extractor};
use intake::Intake;
use job::Hands;
use tally::Tally;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::info;
use trawl_common::names::WorkerId;
use trawl_common::ports::{self, Ports};
use trawl_common::settings::Settings;
use trawl_web::Fetcher;

/// Why a worker could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A selector in `[items.fields]` is wrong.
    #[error(transparent)]
    Selector(#[from] BadSelector),
    /// The HTTP client refused its settings.
    #[error("[fetch]: {0}")]
    Fetch(#[from] trawl_web::Unusable),
    /// A server answered the first call with an error.
    #[error(transparent)]
    Port(#[from] ports::Error),
}

/// Outcomes that may wait to be settled.
const SETTLEMENTS_AHEAD: usize = 1024;

/// What every part of a worker looks at.
pub(crate) struct Shared {
    pub(crate) id: WorkerId,
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) fetcher: Fetcher,
    pub(crate) extractor: Arc<Extractor>,
    pub(crate) hands: Hands,
    pub(crate) tally: Tally,
}

/// Works until `stop`; then finishes what has begun within `worker.shutdown_timeout` and gives the rest back.
pub async fn run(
    ports: Ports,
    settings: Settings,
    id: WorkerId,
    stop: CancellationToken,
) -> Result<(), StartError> {
    let shared = Arc::new(Shared {
        fetcher: Fetcher::new(&settings.fetch)?,
        extractor: Arc::new(Extractor::new(&settings.items)?),
        hands: Hands::default(),
        tally: Tally::default(),
        id,
        ports,
        settings,
    });
    pulse::first_beat(&shared).await?;
    let beats = tokio::spawn(pulse::beats(Arc::clone(&shared)));
    let sweeps = tokio::spawn(pulse::sweeps(Arc::clone(&shared)));

    let concurrency = usize::from(shared.settings.worker.concurrency);
    let (ready, to_launch) = mpsc::channel(concurrency);
    let (settle, to_settle) = mpsc::channel(SETTLEMENTS_AHEAD);
    let intake = Intake::new(Arc::clone(&shared), ready, settle.clone());
    // Each ends when the one before it has ended and its channel is empty.
    let pipeline = async {
        tokio::join!(
            intake.run(stop.clone()),
            launch::run(Arc::clone(&shared), to_launch, settle, stop.clone()),
            settle::run(Arc::clone(&shared), to_settle),
        )
    };
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(shared.settings.worker.shutdown_timeout).await;
    };
    tokio::select! {
        _ = pipeline => {}
        () = too_late => settle::release_all(&shared).await,
    }
    beats.abort();
    sweeps.abort();
    info!(done = shared.tally.done(), failed = shared.tally.failed(), "stopped");
    Ok(())
}
