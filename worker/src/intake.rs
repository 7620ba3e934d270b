//! From claimed URLs to a free fetch slot: when each one's turn is.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;
use trawl_common::host::HostKey;
use trawl_common::outcome::{Class, Failure, Outcome, Skip};
use trawl_common::robots::RobotsKey;
use trawl_common::time::UnixMs;
use trawl_common::url::Origin;
use trawl_common::waiting::{SOON, is_near, room};

use crate::Shared;
use crate::claim::Claimed;
use crate::domains::SLOW;
use crate::job::{Job, Ready};
use crate::refusal;
use crate::robots::{self, Learnt};
use crate::settlement::Settlement;
use crate::standstill::Why;
use crate::store;
use crate::turn::{Turn, turns};

/// So many jobs wait for a robots.txt that takes its time: the others would keep out those of other hosts.
const UNCLEAR_OF_ONE: usize = 16;

/// Most come within this time, and the ladder takes a second: so long any number of jobs waits for one, and when there is no
/// room for more, none are scheduled.
const AT_ONCE: Duration = Duration::from_millis(250);

/// Where jobs go from here.
pub(crate) struct Exits {
    pub(crate) ready: mpsc::Sender<Ready>,
    /// Jobs that run one at a time.
    pub(crate) suspects: mpsc::Sender<Ready>,
    pub(crate) settle: mpsc::Sender<Settlement>,
}

/// Jobs that wait for a robots.txt, and since when it is being found out about.
struct Unclear {
    since: Instant,
    jobs: Vec<Job>,
}

impl Unclear {
    /// Whether another job may wait for it.
    fn has_room(&self) -> bool {
        let waited = self.since.elapsed();
        waited < AT_ONCE || waited < SLOW && self.jobs.len() < UNCLEAR_OF_ONE
    }
}

/// Hands claimed jobs on when their turn comes.
pub(crate) struct Intake {
    shared: Arc<Shared>,
    exits: Exits,
    claimed: Claimed,
    /// Jobs whose slot had passed before they could start.
    missed: mpsc::UnboundedReceiver<Job>,
    /// Jobs whose slot is near. They occupy no fetch slot.
    aside: DelayQueue<Job>,
    /// What waits for which robots.txt.
    unclear: HashMap<RobotsKey, Unclear>,
    /// How many jobs these are.
    unclear_jobs: usize,
    /// What finds out about these.
    learning: JoinSet<(RobotsKey, Learnt)>,
}

impl Intake {
    pub(crate) fn new(
        shared: Arc<Shared>,
        exits: Exits,
        claimed: Claimed,
        missed: mpsc::UnboundedReceiver<Job>,
    ) -> Self {
        let (aside, unclear, unclear_jobs, learning) = Default::default();
        Self { shared, exits, claimed, missed, aside, unclear, unclear_jobs, learning }
    }

    /// Schedules what is claimed until `stop`, then gives back what has not begun.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        self.schedule(&stop).await;
        self.missed.close();
        while let Some(job) = self.missed.recv().await {
            self.settle(job, Outcome::Released).await;
        }
        // Claiming ends by the same signal, and this with it.
        while let Some(job) = self.claimed.next().await {
            self.settle(job, Outcome::Released).await;
        }
        let mut held: Vec<Job> = std::iter::from_fn(|| self.take_any_aside()).collect();
        held.extend(self.unclear.drain().flat_map(|(_, unclear)| unclear.jobs));
        for job in held {
            self.settle(job, Outcome::Released).await;
        }
    }

    async fn schedule(&mut self, stop: &CancellationToken) {
        let most = usize::from(self.shared.settings.worker.concurrency).max(16);
        loop {
            let (crowded, slow) = (self.crowded_until(), self.some_slow_at());
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(due) = self.aside.next(), if !self.aside.is_empty() => {
                    let mut jobs = vec![due.into_inner()];
                    while let Some(Some(due)) = self.aside.next().now_or_never() {
                        jobs.push(due.into_inner());
                    }
                    self.queue_up(jobs).await;
                }
                Some(job) = self.missed.recv() => {
                    let mut jobs = vec![job];
                    jobs.extend(std::iter::from_fn(|| self.missed.try_recv().ok()));
                    self.queue_up(jobs).await;
                }
                Some(Ok((key, learnt))) = self.learning.join_next() => self.go_on(&key, learnt).await,
                () = sleep_until(crowded.unwrap_or_else(Instant::now)), if crowded.is_some() => {}
                () = sleep_until(slow.unwrap_or_else(Instant::now)), if slow.is_some() => self.send_away().await,
                jobs = self.claimed.up_to(most), if crowded.is_none() => match jobs {
                    Some(jobs) => self.queue_up(jobs).await,
                    // Claiming has broken down; its panic is the worker's.
                    None => return,
                },
            }
        }
    }

    /// Sends each job on its way: now, soon, or back to the ladder.
    async fn queue_up(&mut self, jobs: Vec<Job>) {
        let jobs = self.put_off(jobs).await;
        let turns = turns(&self.shared, &jobs).await;
        for (mut job, turn) in jobs.into_iter().zip(turns) {
            match turn {
                Turn::Now(ticket) => self.hand_on(Ready { job, ticket }).await,
                Turn::At { wait, slot } => {
                    (job.message.slot, job.message.turn) = (Some(slot), None);
                    if is_near(wait, self.has_room()) {
                        self.aside.insert(job, wait);
                    } else {
                        self.settle(job, Outcome::Deferred { until: UnixMs::now().plus(wait) }).await;
                    }
                }
                Turn::Later { until, turn } => {
                    (job.message.slot, job.message.turn) = (None, turn);
                    self.settle(job, Outcome::Deferred { until }).await;
                }
                Turn::Unknown(origin) => self.find_out(origin, job).await,
                Turn::Never(outcome) => self.settle(job, outcome).await,
            }
        }
    }

    /// Puts aside what is for spiders whose sinks take nothing, and for slow domains that have as many pages under way as they
    /// may; returns the others. What would only wait here takes no slot of its host.
    async fn put_off(&self, jobs: Vec<Job>) -> Vec<Job> {
        let mut others = Vec::with_capacity(jobs.len());
        for mut job in jobs {
            match store::put_off(&self.shared, &job.spider).or_else(|| self.keeps_away(&job)) {
                Some(until) => {
                    job.message.slot = None;
                    self.settle(job, Outcome::Deferred { until }).await;
                }
                None => others.push(job),
            }
        }
        others
    }

    /// Until when a job's domain, which is slow, has no room for it.
    fn keeps_away(&self, job: &Job) -> Option<UnixMs> {
        let host = job.message.target().host();
        let until = UnixMs::now().plus(self.shared.domains.keeps_away(&HostKey::domain(&host))?);
        let key = job.spider.politeness.manners(&host).key;
        self.shared.standstill.waits(&key, until, Why::Slow);
        Some(until)
    }

    /// Whether another job can wait here. Slow pages stay in hand as what waits does, and the broker sends no more ahead.
    fn has_room(&self) -> bool {
        let kept = self.aside.len() + self.unclear_jobs + self.shared.domains.slow();
        kept < room(self.shared.settings.worker.prefetch)
    }

    /// Until when no more is scheduled, because it would have no room to wait in for a robots.txt that may come at once.
    fn crowded_until(&self) -> Option<Instant> {
        let oldest = self.unclear.values().map(|unclear| unclear.since).min()?;
        Some(oldest + AT_ONCE).filter(|&until| !self.has_room() && until > Instant::now())
    }

    /// When the next of the files that jobs wait for turns out to be slow.
    fn some_slow_at(&self) -> Option<Instant> {
        let awaited = self.unclear.values().filter(|unclear| !unclear.jobs.is_empty());
        awaited.map(|unclear| unclear.since + SLOW).min()
    }

    /// Sends away what waits for files that are slow: it would keep out the jobs of other hosts.
    async fn send_away(&mut self) {
        let slow = self.unclear.values_mut().filter(|unclear| unclear.since.elapsed() >= SLOW);
        let jobs: Vec<Job> = slow.flat_map(|unclear| unclear.jobs.drain(..)).collect();
        self.unclear_jobs -= jobs.len();
        for job in jobs {
            self.settle(job, Outcome::Deferred { until: UnixMs::now().plus(SLOW) }).await;
        }
    }

    /// Lets a job wait for a robots.txt, for each of these a few. Where there is no room, or the file is slow, it comes back
    /// after as long again as the others have waited, so that a slow file costs it few ways round; and no more files are asked
    /// for at once than the broker sends URLs ahead.
    async fn find_out(&mut self, origin: Origin, job: Job) {
        // What was taken together with those that took the last room waits with them.
        let has_room = self.has_room() || self.crowded_until().is_some();
        let may_ask = has_room && self.unclear.len() < self.shared.settings.worker.prefetch.into();
        let key = job.spider.politeness.robots_key(&origin);
        let waited = match self.unclear.get_mut(&key) {
            Some(unclear) if has_room && unclear.has_room() => {
                self.unclear_jobs += 1;
                return unclear.jobs.push(job);
            }
            Some(unclear) => unclear.since.elapsed(),
            None if may_ask => {
                let (shared, spider) = (Arc::clone(&self.shared), Arc::clone(&job.spider));
                self.unclear_jobs += 1;
                self.unclear.insert(key.clone(), Unclear { since: Instant::now(), jobs: vec![job] });
                self.learning.spawn(async move {
                    let learning = AssertUnwindSafe(robots::learn(&shared, &spider, &origin)).catch_unwind();
                    let learnt = learning.await.unwrap_or(Learnt::Panicked);
                    (key, learnt)
                });
                return;
            }
            None => Duration::ZERO,
        };
        self.settle(job, Outcome::Deferred { until: UnixMs::now().plus(waited.max(SOON)) }).await;
    }

    /// What waited for a robots.txt goes on.
    async fn go_on(&mut self, key: &RobotsKey, learnt: Learnt) {
        let jobs = self.unclear.remove(key).map_or_else(Vec::new, |unclear| unclear.jobs);
        self.unclear_jobs -= jobs.len();
        if let Learnt::Known = learnt {
            return self.queue_up(jobs).await;
        }
        for mut job in jobs {
            let outcome = match &learnt {
                Learnt::Refused(failure, until) => {
                    refusal::refused(&self.shared, &mut job, failure.clone(), *until)
                }
                Learnt::Later(until) => Outcome::Deferred { until: *until },
                Learnt::Blocked => Outcome::Skipped(Skip::Blocked),
                Learnt::Known | Learnt::Panicked => {
                    let failure = Failure::new(Class::Robots, "robots.txt: reading it made the worker panic");
                    job.failed(&self.shared.settings.retry, failure)
                }
            };
            self.settle(job, outcome).await;
        }
    }

    async fn hand_on(&self, ready: Ready) {
        let line = if ready.job.is_suspect() { &self.exits.suspects } else { &self.exits.ready };
        // Closed only when the launcher is gone, which ends after this.
        let _ = line.send(ready).await;
    }

    async fn settle(&self, job: Job, outcome: Outcome) {
        self.pass_on(Settlement::of(job, outcome)).await;
    }

    async fn pass_on(&self, settlement: Settlement) {
        // Closed only when the settler is gone, which ends after this.
        let _ = self.exits.settle.send(settlement).await;
    }

    fn take_any_aside(&mut self) -> Option<Job> {
        let key = self.aside.peek()?;
        Some(self.aside.remove(&key).into_inner())
    }
}
