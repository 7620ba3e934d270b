//! trawl's worker: takes URLs from a queue, fetches them politely, extracts, stores, settles.
//!
//! A URL passes through these, in order, each a file of its own:
//!
//! 1. `claim`: takes messages and hears which are this worker's;
//! 2. `intake`: finds each one's `turn` with its host: what `robots` says, then a slot, which comes as a `ticket`;
//! 3. `launch`: counts the start, acknowledges early where the lane says so, and runs in a free slot, if there is room beside
//!    the other `domains`;
//! 4. `process`: what it can `recall` of the page, response cache or fetch ([`trawl_web`]), then `parse` calls
//!    [`trawl_extract`];
//! 5. `store`: puts what the page yielded into the sinks of its spider;
//! 6. `settle`: admits the `links`, writes down `remarks`, ends or parks the record, and acknowledges.
//!
//! Beside them, `pulse` shows that the worker lives, keeps what it holds, and sends lost URLs on their way again,
//! and `standstill` says what it waits for when no URL ends.

mod barren;
mod claim;
#[cfg(feature = "cli")]
pub mod cli;
mod crawls;
mod domains;
mod gather;
mod intake;
mod job;
mod launch;
mod links;
mod outage;
mod parse;
mod process;
mod pulse;
mod recall;
mod refusal;
mod remarks;
mod robots;
mod settle;
mod settlement;
mod spiders;
mod standstill;
mod store;
mod tally;
mod turn;
mod url_log;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use domains::Domains;
use intake::Intake;
use job::Hands;
use launch::Company;
use parse::Parser;
use robots::RobotsBook;
use spiders::Spiders;
pub use spiders::Unready;
use tally::Tally;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use trawl_common::ceiling::Ceiling;
use trawl_common::health::Health;
use trawl_common::line::Line;
use trawl_common::names::WorkerId;
use trawl_common::ports::{self, Ports};
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_common::turns::Turns;
use trawl_common::waiting::ready_room;
use url_log::UrlLog;

/// Why a worker could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The default spider cannot work.
    #[error(transparent)]
    Spider(#[from] Unready),
    /// The system gives no threads.
    #[error("cannot start threads that parse: {0}")]
    Threads(#[source] std::io::Error),
    /// A server answered the first call with an error.
    #[error(transparent)]
    Port(#[from] ports::Error),
}

/// Outcomes that may wait to be settled.
const SETTLEMENTS_AHEAD: usize = 1024;

/// How long a worker that is out of time may take to give back what it has.
const LAST_WORD: Duration = Duration::from_secs(5);

/// What every part of a worker looks at.
pub(crate) struct Shared {
    pub(crate) id: WorkerId,
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) spiders: Spiders,
    pub(crate) parser: Parser,
    pub(crate) hands: Hands,
    pub(crate) robots: RobotsBook,
    pub(crate) turns: Turns,
    pub(crate) domains: Arc<Domains>,
    pub(crate) health: Arc<Health>,
    pub(crate) tally: Tally,
    pub(crate) url_log: UrlLog,
    pub(crate) standstill: standstill::Standstill,
    pub(crate) known: links::Known,
    pub(crate) crawls: crawls::Crawls,
}

/// Works until `stop`, by what the files of spiders in `folder` say; then finishes what has begun within
/// `worker.shutdown_timeout` and gives the rest back.
pub async fn run(
    ports: Ports,
    settings: Settings,
    folder: Folder,
    id: WorkerId,
    stop: CancellationToken,
) -> Result<(), StartError> {
    let health = Arc::<Health>::default();
    let shared = Arc::new(Shared {
        spiders: Spiders::new(&settings, folder, Arc::clone(&ports.outlets))?,
        parser: Parser::start(settings.worker.page_memory.as_u64() / 2).map_err(StartError::Threads)?,
        hands: Hands::default(),
        robots: RobotsBook::default(),
        turns: Turns {
            hosts: Arc::clone(&ports.hosts),
            health: Arc::clone(&health),
            places: Arc::default(),
            // As soon as a URL that its worker holds.
            lapse: settings.recovery.patience / 4,
            ceiling: Arc::new(Ceiling::of(settings.fetch.max_rate)),
        },
        domains: Arc::new(Domains::new(&settings.worker)),
        health,
        tally: Tally::default(),
        url_log: UrlLog::new(&settings),
        standstill: Default::default(),
        known: links::Known::default(),
        crawls: crawls::Crawls::default(),
        id,
        ports,
        settings,
    });
    pulse::first_beat(&shared).await?;
    // Ended with this function.
    let mut pulse = JoinSet::new();
    pulse.spawn(pulse::beats(Arc::clone(&shared)));
    pulse.spawn(pulse::keeping(Arc::clone(&shared)));
    pulse.spawn(pulse::sweeps(Arc::clone(&shared)));
    pulse.spawn(pulse::looks(Arc::clone(&shared)));
    pulse.spawn(pulse::summaries(Arc::clone(&shared)));
    pulse.spawn(standstill::watch(Arc::clone(&shared)));
    let turns = shared.turns.clone();
    pulse.spawn(async move { match turns.places.freeing(&*turns.hosts).await {} });

    let concurrency = usize::from(shared.settings.worker.concurrency);
    // As many as can be in hand, so that suspects never hold up the others.
    let in_hand = usize::from(shared.settings.worker.prefetch) * Line::ALL.len();
    let (ready, to_launch) = mpsc::channel(ready_room(concurrency));
    let (suspects, to_launch_alone) = mpsc::channel(in_hand);
    let (store, to_store) = mpsc::channel(SETTLEMENTS_AHEAD);
    let (settle, to_settle) = mpsc::channel(SETTLEMENTS_AHEAD);
    let (missed, to_queue_up) = mpsc::unbounded_channel();
    let (claiming, claimed) = claim::claiming(Arc::clone(&shared), store.clone());
    let intake = Intake::new(
        Arc::clone(&shared),
        intake::Exits { ready, suspects, settle: store.clone() },
        claimed,
        to_queue_up,
    );
    let exits = launch::Exits { missed, settle: store };
    // Each ends when the one before it has ended and its channel is empty; all with this function.
    let mut pipeline = JoinSet::new();
    pipeline.spawn(claiming.run(stop.clone()));
    pipeline.spawn(intake.run(stop.clone()));
    for (jobs, company) in [(to_launch, Company::Many(concurrency)), (to_launch_alone, Company::None)] {
        pipeline.spawn(launch::run(Arc::clone(&shared), jobs, exits.clone(), stop.clone(), company));
    }
    drop(exits);
    pipeline.spawn(store::run(Arc::clone(&shared), to_store, settle));
    pipeline.spawn(settle::run(Arc::clone(&shared), to_settle));
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(shared.settings.worker.shutdown_timeout).await;
    };
    tokio::select! {
        () = end(&mut pipeline) => shared.spiders.close().await,
        () = too_late => {
            pipeline.shutdown().await;
            give_back(&shared).await;
        }
    }
    let _ = tokio::time::timeout(LAST_WORD, shared.turns.places.free(&*shared.turns.hosts)).await;
    info!(done = shared.tally.done(), failed = shared.tally.failed(), "stopped");
    Ok(())
}

/// Waits for the end of every part. A panic of one is the worker's.
async fn end(parts: &mut JoinSet<()>) {
    while let Some(ended) = parts.join_next().await {
        if let Err(panicked) = ended
            && let Ok(panic) = panicked.try_into_panic()
        {
            resume_unwind(panic);
        }
    }
}

/// Gives back what is in hand, if the servers let it: else they notice themselves that this worker is gone.
async fn give_back(shared: &Shared) {
    if tokio::time::timeout(LAST_WORD, settle::release_all(shared)).await.is_err() {
        warn!("could not give back what is in hand; others take it over when it counts as lost");
    }
}
