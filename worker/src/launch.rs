//! From a turn to a running fetch.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use trawl_common::host::HostKey;
use trawl_common::outcome::{Class, Failure, Outcome, Reason, Skip};
use trawl_common::ports::{Claim, Start};
use trawl_common::settings::Acks;
use trawl_common::time::UnixMs;
use trawl_common::waiting::ready_room;

use crate::Shared;
use crate::domains::{SLOW, UnderWay};
use crate::gather::MOMENT;
use crate::job::{Job, Ready};
use crate::process::process;
use crate::settlement::Settlement;
use crate::standstill::Why;
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

/// A job that may run.
struct Begun {
    ready: Ready,
    under_way: UnderWay,
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
    let ceiling = &shared.turns.ceiling;
    while ready.recv_many(&mut jobs, free(&slots, company).await.min(ceiling.at_once())).await > 0 {
        while running.try_join_next().is_some() {}
        if stop.is_cancelled() {
            for Ready { job, .. } in jobs.drain(..) {
                exits.settle(job, Outcome::Released).await;
            }
            continue;
        }
        for begun in start(&shared, &mut jobs, &exits).await {
            // What takes its time from others stands back, unless it is alone anyway.
            let needs_slot = begun.under_way.needs_slot() || matches!(company, Company::None);
            let slot = match needs_slot {
                // It is never closed.
                true => Arc::clone(&slots).acquire_owned().await.ok(),
                false => None,
            };
            ceiling.wait().await;
            shared.url_log.begins(&begun.ready.job);
            let (shared, settle) = (Arc::clone(&shared), exits.settle.clone());
            running.spawn(async move {
                let (settlement, slot) = work(&shared, begun, slot, company).await;
                let _ = settle.send(settlement).await;
                drop(slot);
            });
        }
    }
    while running.join_next().await.is_some() {}
}

/// Works on a page. Returns its slot, unless the page is slow and gave it up, or keeps it until it is settled.
async fn work(
    shared: &Shared,
    Begun { ready: Ready { job, ticket }, mut under_way }: Begun,
    mut slot: Option<OwnedSemaphorePermit>,
    company: Company,
) -> (Settlement, Option<OwnedSemaphorePermit>) {
    let began = Instant::now();
    let mut working = pin!(AssertUnwindSafe(process(shared, job.clone(), ticket)).catch_unwind());
    let settlement = match timeout(SLOW, &mut working).await {
        Ok(settlement) => settlement,
        Err(_) => match (under_way.is_slow(), company) {
            (_, Company::None) => working.await,
            (Ok(()), Company::Many(_)) => {
                slot = slot.filter(|_| under_way.needs_slot());
                working.await
            }
            // Others could not begin while it goes on.
            (Err(away), Company::Many(_)) => Ok(put_off(job.clone(), UnixMs::now().plus(away))),
        },
    };
    if settlement.as_ref().is_ok_and(Settlement::is_answered) {
        under_way.is_answered();
    }
    drop(under_way);
    let settlement = settlement.unwrap_or_else(|_| Settlement::of(job, panicked())).after(began.elapsed());
    match company {
        Company::Many(_) => (settlement, slot),
        Company::None => (settlement.with_slot(slot), None),
    }
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
        self.pass_on(Settlement::of(job, outcome)).await;
    }

    async fn pass_on(&self, settlement: Settlement) {
        // Closed only when the settler is gone, which ends after this.
        let _ = self.settle.send(settlement).await;
    }
}

/// Has a job come back later, and ask for another slot then.
fn put_off(mut job: Job, until: UnixMs) -> Settlement {
    job.message.slot = None;
    Settlement::of(job, Outcome::Deferred { until })
}

/// Takes out the jobs whose spiders' sinks have to take something first.
fn awaits_sinks(shared: &Shared, jobs: &mut Vec<Ready>) -> Vec<(Job, UnixMs)> {
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

/// Takes out the jobs for which there is no room, and makes room for the others.
fn make_room(shared: &Shared, jobs: &mut Vec<Ready>) -> (Vec<Begun>, Vec<(Job, UnixMs)>) {
    let (mut begun, mut off) = (Vec::with_capacity(jobs.len()), Vec::new());
    for ready in jobs.drain(..) {
        let host = ready.job.message.target().host();
        match shared.domains.begin(HostKey::domain(&host)) {
            Ok(under_way) => begun.push(Begun { ready, under_way }),
            Err(away) => {
                let until = UnixMs::now().plus(away);
                let key = ready.job.spider.politeness.manners(&host).key;
                shared.standstill.waits(&key, until, Why::Slow);
                off.push((ready.job, until));
            }
        }
    }
    (begun, off)
}

/// Counts the starts, acknowledges early where the lane says so, and returns the jobs that may begin; those whose slot has
/// passed while they waited for a fetch slot need another.
async fn start(shared: &Shared, jobs: &mut Vec<Ready>, exits: &Exits) -> Vec<Begun> {
    for Ready { job, .. } in jobs.extract_if(.., |ready| ready.ticket.is_void()) {
        exits.miss(job).await;
    }
    let mut off = awaits_sinks(shared, jobs);
    let (begun, crowded) = make_room(shared, jobs);
    off.extend(crowded);
    for (job, until) in off {
        exits.pass_on(put_off(job, until)).await;
    }
    if begun.is_empty() {
        return Vec::new();
    }
    let claims: Vec<Claim> = begun.iter().map(|begun| begun.ready.job.claim()).collect();
    let counting = || shared.ports.frontier.start(&shared.id, &claims);
    let starts = shared.health.until_done("counting starts", counting).await;
    let mut go = Vec::with_capacity(begun.len());
    let mut early = Vec::new();
    for (begun, (start, claim)) in begun.into_iter().zip(starts.into_iter().zip(&claims)) {
        let outcome = match start {
            Start::Go => {
                let lane = begun.ready.job.message.lane;
                if shared.settings.queues.lane(lane).acks == Acks::Early {
                    early.extend(shared.hands.receipts(claim));
                }
                go.push(begun);
                continue;
            }
            Start::Awaited => {
                let until = UnixMs::now().plus(AWAITED.mul_f64(rand::random_range(1.0..2.0)));
                exits.pass_on(put_off(begun.ready.job, until)).await;
                continue;
            }
            Start::Poison => {
                let failure = Failure::new(Class::Parse, "started several times and never finished");
                Outcome::Failed(failure, Reason::Poison)
            }
            Start::Full => Outcome::Skipped(Skip::Limit),
            Start::Lost => Outcome::SentAgain,
        };
        exits.settle(begun.ready.job, outcome).await;
    }
    if !early.is_empty()
        && let Err(error) = shared.ports.queue.ack(&early).await
    {
        // The message comes again and joins its job in hand.
        tracing::debug!(%error, "early ack failed");
    }
    go
}
