//! From the queue to a free fetch slot: which messages are this worker's to handle, and when.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;
use trawl_common::backoff::Backoff;
use trawl_common::gcra::Slot;
use trawl_common::message::Message;
use trawl_common::outcome::Outcome;
use trawl_common::ports::{Ask, Consumer, Content, Delivery, Heard};
use trawl_common::time::UnixMs;

use crate::Shared;
use crate::job::Job;
use crate::settle::Settlement;

/// A slot nearer than this waits in the worker; a farther one goes back to the queue's ladder.
const NEAR: Duration = Duration::from_secs(5);

/// What fails while the queue is away.
const TAKING: &str = "taking messages";

/// Takes messages and hands their jobs on when their turn comes.
pub(crate) struct Intake {
    shared: Arc<Shared>,
    ready: mpsc::Sender<Job>,
    /// Jobs that run one at a time.
    suspects: mpsc::Sender<Job>,
    settle: mpsc::Sender<Settlement>,
    /// Jobs whose slot is near. They occupy no fetch slot.
    aside: DelayQueue<Job>,
}

/// When a job's turn is.
enum Turn {
    Now,
    Near(Duration),
    Far { until: UnixMs, reserved: Option<UnixMs> },
}

impl Intake {
    pub(crate) fn new(
        shared: Arc<Shared>,
        ready: mpsc::Sender<Job>,
        suspects: mpsc::Sender<Job>,
        settle: mpsc::Sender<Settlement>,
    ) -> Self {
        Self { shared, ready, suspects, settle, aside: DelayQueue::new() }
    }

    /// Consumes until `stop`, then gives back what it holds aside. A broken consumer is replaced.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut backoff = Backoff::default();
        let health = &Arc::clone(&self.shared).health;
        while !stop.is_cancelled() {
            let prefetch = self.shared.settings.worker.prefetch;
            let opened = tokio::select! {
                () = stop.cancelled() => break,
                opened = self.shared.ports.queue.consume(prefetch) => opened,
            };
            match opened {
                Ok(consumer) => {
                    health.works(TAKING);
                    backoff = Backoff::default();
                    self.consume(consumer, &stop).await;
                }
                Err(error) => {
                    health.fails(TAKING, &error);
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = backoff.pause() => {}
                    }
                }
            }
        }
        let aside: Vec<Job> = std::iter::from_fn(|| self.take_any_aside()).collect();
        for job in aside {
            self.settle(job, Outcome::Released).await;
        }
    }

    /// Consumes until `stop` or until the consumer breaks.
    async fn consume(&mut self, mut consumer: Box<dyn Consumer>, stop: &CancellationToken) {
        let most = usize::from(self.shared.settings.worker.concurrency).max(16);
        loop {
            let taken = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(due) = self.aside.next(), if !self.aside.is_empty() => {
                    self.hand_on(due.into_inner()).await;
                    continue;
                }
                taken = consumer.next(most) => taken,
            };
            match taken {
                Ok(deliveries) => self.receive(deliveries).await,
                Err(error) => {
                    self.shared.health.fails(TAKING, &error);
                    return;
                }
            }
        }
    }

    /// 1. Passes on what is no message.
    /// 2. Joins what is in hand already.
    /// 3. Hears which of the rest are this worker's.
    /// 4. Finds each one's turn.
    async fn receive(&mut self, deliveries: Vec<Delivery>) {
        let mut messages = Vec::with_capacity(deliveries.len());
        for Delivery { content, receipt } in deliveries {
            match content {
                Content::Message(message) => {
                    if self.shared.hands.take(&message, receipt) {
                        messages.push(message);
                    }
                }
                Content::Probe(probe) => self.pass_on(Settlement::Probe(probe, receipt)).await,
                Content::Malformed(malformed) => {
                    self.pass_on(Settlement::Malformed(malformed, receipt)).await;
                }
            }
        }
        if messages.is_empty() {
            return;
        }
        let Shared { ports, id, health, .. } = &*self.shared;
        let heard = health.until_done("hearing messages", || ports.frontier.hear(id, &messages)).await;
        let now = UnixMs::now();
        let mut jobs = Vec::with_capacity(messages.len());
        for (message, heard) in messages.into_iter().zip(heard) {
            match heard {
                Heard::Take { attempts, starts, deadline } => {
                    let message = Message { deadline: deadline.or(message.deadline), ..message };
                    let is_expired = message.is_expired(now);
                    let job = Job { message, attempts, starts };
                    match is_expired {
                        true => self.settle(job, Outcome::Expired).await,
                        false => jobs.push(job),
                    }
                }
                Heard::SendAgain => self.settle(Job::untouched(message), Outcome::SentAgain).await,
                Heard::Wait { until } => self.settle(Job::untouched(message), Outcome::Waits { until }).await,
                Heard::Drop => self.settle(Job::untouched(message), Outcome::Dropped).await,
            }
        }
        self.queue_up(jobs).await;
    }

    /// Sends each job on its way: now, soon, or back to the ladder.
    async fn queue_up(&mut self, jobs: Vec<Job>) {
        let room = usize::from(self.shared.settings.worker.prefetch) / 2;
        let turns = self.turns(&jobs).await;
        for (mut job, turn) in jobs.into_iter().zip(turns) {
            match turn {
                Turn::Now => self.hand_on(job).await,
                Turn::Near(wait) if self.aside.len() < room => {
                    self.aside.insert(job, wait);
                }
                Turn::Near(wait) => {
                    let until = UnixMs::now().plus(wait);
                    self.settle(job, Outcome::Deferred { until }).await;
                }
                Turn::Far { until, reserved } => {
                    job.message.slot = reserved;
                    self.settle(job, Outcome::Deferred { until }).await;
                }
            }
        }
    }

    /// When each job's turn is: what was put aside waits for its instant, the rest ask for a slot.
    async fn turns(&self, jobs: &[Job]) -> Vec<Turn> {
        let now = UnixMs::now();
        let pace = self.shared.settings.politeness.pace();
        let waits = |message: &Message| message.until.is_some_and(|until| until > now);
        let asks: Vec<Ask> = jobs
            .iter()
            .filter(|job| !waits(&job.message))
            .filter_map(|job| Some(Ask { host: job.message.url.host(), pace: pace?, held: job.message.slot }))
            .collect();
        let mut slots = if asks.is_empty() {
            Vec::new()
        } else {
            let Shared { ports, health, .. } = &*self.shared;
            health.until_done("reserving slots", || ports.hosts.reserve(&asks)).await
        }
        .into_iter();
        jobs.iter()
            .map(|job| match job.message.until.filter(|&until| until > now) {
                Some(until) => later(until, job.message.slot, now),
                None if pace.is_none() => Turn::Now,
                None => slots.next().map_or(Turn::Now, |slot| turn(slot, now)),
            })
            .collect()
    }

    async fn hand_on(&self, job: Job) {
        let line = if job.is_suspect() { &self.suspects } else { &self.ready };
        // Closed only when the launcher is gone, which ends after this.
        let _ = line.send(job).await;
    }

    async fn settle(&self, job: Job, outcome: Outcome) {
        self.pass_on(Settlement::of(job, outcome)).await;
    }

    async fn pass_on(&self, settlement: Settlement) {
        // Closed only when the settler is gone, which ends after this.
        let _ = self.settle.send(settlement).await;
    }

    fn take_any_aside(&mut self) -> Option<Job> {
        let key = self.aside.peek()?;
        Some(self.aside.remove(&key).into_inner())
    }
}

fn turn(slot: Slot, now: UnixMs) -> Turn {
    match slot {
        Slot::Granted { wait, .. } if wait.is_zero() => Turn::Now,
        Slot::Granted { wait, .. } if wait <= NEAR => Turn::Near(wait),
        Slot::Granted { wait, at } => Turn::Far { until: now.plus(wait), reserved: Some(at) },
        Slot::Later { wait } => Turn::Far { until: now.plus(wait), reserved: None },
    }
}

fn later(until: UnixMs, reserved: Option<UnixMs>, now: UnixMs) -> Turn {
    let wait = until.wait_from(now);
    if wait <= NEAR && reserved.is_some() { Turn::Near(wait) } else { Turn::Far { until, reserved } }
}
