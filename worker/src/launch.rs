//! From a turn to a running fetch.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use trawl_common::outcome::{Class, Failure, Outcome, Reason, Skip};
use trawl_common::ports::{Claim, Start};
use trawl_common::settings::Acks;
use trawl_common::time::UnixMs;
use trawl_common::waiting::ready_room;

use crate::Shared;
use crate::gather::MOMENT;
use crate::job::{Job, Ready};
use crate::process::process;
use crate::settlement::Settlement;
use crate::store;

/// How long a URL waits, about, whose crawl has as many pages under way as it may still do.
const AWAITED: Duration = Duration::from_secs(2);

/// Where jobs go that do not start.
#[derive(Clone)]
pub(crate) struct Exits {
    /// Those whose slot has passed: they need another.
    pub(crate) missed: mpsc::UnboundedSender<Job>,
    pub(crate) settle: mpsc::Sender<Settlement>,
}

/// In what company jobs run.
#[derive(Clone, Copy)]
pub(crate) enum Company {
    /// So many at once.
    Many(usize),
    /// Each alone, from its start until it is settled.
    None,
}

impl Company {
    fn most(self) -> usize {
        match self {
            Self::Many(most) => most,
            Self::None => 1,
        }
    }

    /// How many slots are best filled together, so that one call counts their starts: for as many jobs as wait.
    fn at_once(self) -> u32 {
        u32::try_from(ready_room(self.most())).unwrap_or(u32::MAX)
    }
}

/// Starts jobs as slots come free, until `ready` is closed and empty; then waits for the running ones.
/// After `stop` what has not begun is given back.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut ready: mpsc::Receiver<Ready>,
    exits: Exits,
    stop: CancellationToken,
    company: Company,
) {
    let most = company.most();
    let slots = Arc::new(Semaphore::new(most));
    let mut running = JoinSet::new();
    let mut jobs = Vec::with_capacity(most);
    // As many jobs as have slots start in one step.
    while ready.recv_many(&mut jobs, free(&slots, company).await).await > 0 {
        while running.try_join_next().is_some() {}
        if stop.is_cancelled() {
            for Ready { job, .. } in jobs.drain(..) {
                exits.settle(job, Outcome::Released).await;
            }
            continue;
        }
        for Ready { job, ticket } in start(&shared, &mut jobs, &exits).await {
            // It is never closed.
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let (shared, settle) = (Arc::clone(&shared), exits.settle.clone());
            shared.url_log.begins(&job);
            running.spawn(async move {
                let began = Instant::now();
                let working = AssertUnwindSafe(process(&shared, job.clone(), ticket)).catch_unwind();
                let settlement = working.await.unwrap_or_else(|_| Settlement::of(job, panicked()));
                let settlement = settlement.after(began.elapsed());
                let (settlement, slot) = match company {
                    Company::Many(_) => (settlement, Some(slot)),
                    Company::None => (settlement.with_slot(slot), None),
                };
                let _ = settle.send(settlement).await;
                drop(slot);
            });
        }
    }
    while running.join_next().await.is_some() {}
}

/// Waits until a slot is free, and a moment for some more. Returns how many are; only the caller takes any.
async fn free(slots: &Semaphore, company: Company) -> usize {
    // It is never closed.
    let _ = slots.acquire().await;
    let _ = timeout(MOMENT, slots.acquire_many(company.at_once())).await;
    slots.available_permits()
}

/// The page is not tried again: what it has done to this worker it would do to others.
fn panicked() -> Outcome {
    Outcome::Failed(Failure::new(Class::Parse, "handling it made the worker panic"), Reason::Final)
}

impl Exits {
    /// Sends back for another slot what missed its own. It has not started: a start that never ends counts towards
    /// poison.
    async fn miss(&self, mut job: Job) {
        job.misses += 1;
        job.message.slot = None;
        // Closed when the worker is stopping.
        if let Err(mpsc::error::SendError(job)) = self.missed.send(job) {
            self.settle(job, Outcome::Released).await;
        }
    }

    async fn settle(&self, job: Job, outcome: Outcome) {
        // Closed only when the settler is gone, which ends after this.
        let _ = self.settle.send(Settlement::of(job, outcome)).await;
    }
}

/// Takes out the jobs whose spiders' sinks have to take something first.
fn put_off(shared: &Shared, jobs: &mut Vec<Ready>) -> Vec<(Job, UnixMs)> {
    let (mut off, mut rest) = (Vec::new(), Vec::with_capacity(jobs.len()));
    for ready in jobs.drain(..) {
        match store::put_off(shared, &ready.job.spider) {
            Some(until) => off.push((ready.job, until)),
            None => rest.push(ready),
        }
    }
    *jobs = rest;
    off
}

/// Counts the starts, acknowledges early where the lane says so, and returns the jobs that may begin; those whose slot has
/// passed while they waited for a fetch slot need another.
async fn start(shared: &Shared, jobs: &mut Vec<Ready>, exits: &Exits) -> Vec<Ready> {
    for Ready { job, .. } in jobs.extract_if(.., |ready| ready.ticket.is_void()) {
        exits.miss(job).await;
    }
    for (mut job, until) in put_off(shared, jobs) {
        job.message.slot = None;
        exits.settle(job, Outcome::Deferred { until }).await;
    }
    if jobs.is_empty() {
        return Vec::new();
    }
    let claims: Vec<Claim> = jobs.iter().map(|ready| ready.job.claim()).collect();
    let counting = || shared.ports.frontier.start(&shared.id, &claims);
    let starts = shared.health.until_done("counting starts", counting).await;
    let mut go = Vec::with_capacity(jobs.len());
    let mut early = Vec::new();
    for (mut ready, (start, claim)) in jobs.drain(..).zip(starts.into_iter().zip(&claims)) {
        let outcome = match start {
            Start::Go => {
                if shared.settings.queues.lane(ready.job.message.lane).acks == Acks::Early {
                    early.extend(shared.hands.receipts(claim));
                }
                go.push(ready);
                continue;
            }
            Start::Poison => {
                let failure = Failure::new(Class::Parse, "started several times and never finished");
                Outcome::Failed(failure, Reason::Poison)
            }
            Start::Full => Outcome::Skipped(Skip::Limit),
            Start::Awaited => {
                ready.job.message.slot = None;
                Outcome::Deferred { until: UnixMs::now().plus(AWAITED.mul_f64(rand::random_range(1.0..2.0))) }
            }
            Start::Lost => Outcome::SentAgain,
        };
        exits.settle(ready.job, outcome).await;
    }
    if !early.is_empty()
        && let Err(error) = shared.ports.queue.ack(&early).await
    {
        // The message comes again and joins its job in hand.
        tracing::debug!(%error, "early ack failed");
    }
    go
}
