//! From a turn to a running fetch.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trawl_common::outcome::{Class, Failure, Outcome, Reason};
use trawl_common::ports::{Claim, Start};
use trawl_common::settings::Acks;

use crate::Shared;
use crate::job::Job;
use crate::process::process;
use crate::settle::Settlement;

/// Starts jobs as slots come free, `most` of them, until `ready` is closed and empty; then waits for the running ones.
/// After `stop` what has not begun is given back.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut ready: mpsc::Receiver<Job>,
    settle: mpsc::Sender<Settlement>,
    stop: CancellationToken,
    most: usize,
) {
    let slots = Arc::new(Semaphore::new(most));
    let mut running = JoinSet::new();
    let mut jobs = Vec::with_capacity(most);
    // One slot must be free; as many jobs as have slots then start in one step.
    while let Ok(free) = Arc::clone(&slots).acquire_owned().await {
        let most = 1 + slots.available_permits();
        drop(free);
        if ready.recv_many(&mut jobs, most).await == 0 {
            break;
        }
        while running.try_join_next().is_some() {}
        if stop.is_cancelled() {
            for job in jobs.drain(..) {
                let _ = settle.send(Settlement::of(job, Outcome::Released)).await;
            }
            continue;
        }
        for job in start(&shared, &mut jobs, &settle).await {
            let slot = Arc::clone(&slots).acquire_owned().await;
            let (shared, settle) = (Arc::clone(&shared), settle.clone());
            running.spawn(async move {
                let settlement = process(&shared, job).await;
                let _ = settle.send(settlement).await;
                drop(slot);
            });
        }
    }
    while running.join_next().await.is_some() {}
}

/// Counts the starts, acknowledges early where the lane says so, and returns the jobs that may begin.
async fn start(shared: &Shared, jobs: &mut Vec<Job>, settle: &mpsc::Sender<Settlement>) -> Vec<Job> {
    let claims: Vec<Claim> = jobs.iter().map(Job::claim).collect();
    let counting = || shared.ports.frontier.start(&shared.id, &claims);
    let starts = shared.health.until_done("counting starts", counting).await;
    let mut go = Vec::with_capacity(jobs.len());
    let mut early = Vec::new();
    for (job, (start, claim)) in jobs.drain(..).zip(starts.into_iter().zip(&claims)) {
        let outcome = match start {
            Start::Go => {
                if shared.settings.queues.lane(job.message.lane).acks == Acks::Early {
                    early.extend(shared.hands.receipts(claim));
                }
                go.push(job);
                continue;
            }
            Start::Poison => {
                let failure = Failure::new(Class::Parse, "started several times and never finished");
                Outcome::Failed(failure, Reason::Poison)
            }
            Start::Lost => Outcome::SentAgain,
        };
        let _ = settle.send(Settlement::of(job, outcome)).await;
    }
    if !early.is_empty()
        && let Err(error) = shared.ports.queue.ack(&early).await
    {
        // The message comes again and joins its job in hand.
        tracing::debug!(%error, "early ack failed");
    }
    go
}
