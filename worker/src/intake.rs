//! From the queue to a free fetch slot: which messages are this worker's to handle, and when.

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
use trawl_common::backoff::Backoff;
use trawl_common::message::{Malformed, Message};
use trawl_common::outcome::{Class, Failure, Outcome, Skip};
use trawl_common::ports::{Consumer, Content, Delivery, Heard};
use trawl_common::time::UnixMs;
use trawl_common::url::Origin;
use trawl_common::waiting::{SOON, is_near, room};

use crate::Shared;
use crate::job::{Job, Ready, claim};
use crate::refusal;
use crate::robots::{self, Learnt};
use crate::settlement::Settlement;
use crate::store;
use crate::turn::{Turn, turns};

/// What fails while the queue is away.
const TAKING: &str = "taking messages";

/// So many jobs wait for a robots.txt that takes its time: the others would keep out those of other hosts.
const UNCLEAR_OF_ONE: usize = 16;

/// Most come within this time, and the ladder takes a second: so long any number of jobs waits for one, and when there is no
/// room for more, none are taken.
const AT_ONCE: Duration = Duration::from_millis(250);

/// How long URLs wait whose spider's file cannot be used.
const UNREADY: Duration = Duration::from_secs(30);

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
        self.jobs.len() < UNCLEAR_OF_ONE || self.since.elapsed() < AT_ONCE
    }
}

/// Takes messages and hands their jobs on when their turn comes.
pub(crate) struct Intake {
    shared: Arc<Shared>,
    exits: Exits,
    /// Jobs whose slot had passed before they could start.
    missed: mpsc::UnboundedReceiver<Job>,
    /// Jobs whose slot is near. They occupy no fetch slot.
    aside: DelayQueue<Job>,
    /// What waits for the robots.txt of an origin.
    unclear: HashMap<Origin, Unclear>,
    /// How many jobs these are.
    unclear_jobs: usize,
    /// What finds out about these.
    learning: JoinSet<(Origin, Learnt)>,
}

impl Intake {
    pub(crate) fn new(shared: Arc<Shared>, exits: Exits, missed: mpsc::UnboundedReceiver<Job>) -> Self {
        let (aside, unclear, unclear_jobs, learning) = Default::default();
        Self { shared, exits, missed, aside, unclear, unclear_jobs, learning }
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
        self.missed.close();
        while let Some(job) = self.missed.recv().await {
            self.settle(job, Outcome::Released).await;
        }
        let mut held: Vec<Job> = std::iter::from_fn(|| self.take_any_aside()).collect();
        held.extend(self.unclear.drain().flat_map(|(_, unclear)| unclear.jobs));
        for job in held {
            self.settle(job, Outcome::Released).await;
        }
    }

    /// Consumes until `stop` or until the consumer breaks.
    async fn consume(&mut self, mut consumer: Box<dyn Consumer>, stop: &CancellationToken) {
        let most = usize::from(self.shared.settings.worker.concurrency).max(16);
        loop {
            let crowded = self.crowded_until();
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
                Some(Ok((origin, learnt))) = self.learning.join_next() => self.go_on(&origin, learnt).await,
                () = sleep_until(crowded.unwrap_or_else(Instant::now)), if crowded.is_some() => {}
                taken = consumer.next(most), if crowded.is_none() => match taken {
                    Ok(deliveries) => self.receive(deliveries).await,
                    Err(error) => {
                        self.shared.health.fails(TAKING, &error);
                        return;
                    }
                },
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
                    let message = self.canonical(message);
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
                    // The record decides; what a copy of its message says of it may be old.
                    let message = Message { deadline, ..message };
                    let Some(spider) = self.shared.spiders.get(&message.crawl.spider) else {
                        let until = now.plus(UNREADY);
                        self.let_be(message, Outcome::Deferred { until }).await;
                        continue;
                    };
                    if let Some(until) = store::put_off(&self.shared, &spider) {
                        self.let_be(message, Outcome::Deferred { until }).await;
                        continue;
                    }
                    let is_expired = message.is_expired(now);
                    let job = Job { message, attempts, starts, misses: 0, spider };
                    match is_expired {
                        true => self.settle(job, Outcome::Expired).await,
                        false => jobs.push(job),
                    }
                }
                Heard::SendAgain => self.let_be(message, Outcome::SentAgain).await,
                Heard::Wait { until } => self.let_be(message, Outcome::Waits { until }).await,
                Heard::Full => self.let_be(message, Outcome::Skipped(Skip::Limit)).await,
                // Let go at once: its own message may come at any time, and is not to join it.
                Heard::Drop => {
                    let receipts = self.shared.hands.let_go(&claim(&message));
                    self.pass_on(Settlement::Dropped(receipts)).await;
                }
                Heard::Unknown => self.refuse(&message).await,
            }
        }
        self.queue_up(jobs).await;
    }

    /// A message of a stranger's is for the page that its URL stands for; what trawl sent says it already.
    fn canonical(&self, message: Message) -> Message {
        if message.is_ours {
            return message;
        }
        match self.shared.spiders.get(&message.crawl.spider) {
            Some(spider) => Message { url: spider.spider.urls.canonical(message.url), ..message },
            None => message,
        }
    }

    /// Sends each job on its way: now, soon, or back to the ladder.
    async fn queue_up(&mut self, jobs: Vec<Job>) {
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

    /// Whether another job can wait here.
    fn has_room(&self) -> bool {
        self.aside.len() + self.unclear_jobs < room(self.shared.settings.worker.prefetch)
    }

    /// Until when no more is taken, because it would have no room to wait in for a robots.txt that may come at once.
    fn crowded_until(&self) -> Option<Instant> {
        let oldest = self.unclear.values().map(|unclear| unclear.since).min()?;
        Some(oldest + AT_ONCE).filter(|&until| !self.has_room() && until > Instant::now())
    }

    /// Lets a job wait for a robots.txt, of each origin a few. Where there is no room it comes back after as long again as
    /// the others have waited, so that a slow file costs it few ways round; and no more files are asked for at once than
    /// jobs can wait.
    async fn find_out(&mut self, origin: Origin, job: Job) {
        // What was taken together with those that took the last room waits with them.
        let has_room = self.has_room() || self.crowded_until().is_some();
        let waited = match self.unclear.get_mut(&origin) {
            Some(unclear) if has_room && unclear.has_room() => {
                self.unclear_jobs += 1;
                return unclear.jobs.push(job);
            }
            Some(unclear) => unclear.since.elapsed(),
            None if has_room => {
                let (shared, spider) = (Arc::clone(&self.shared), Arc::clone(&job.spider));
                self.unclear_jobs += 1;
                self.unclear.insert(origin.clone(), Unclear { since: Instant::now(), jobs: vec![job] });
                self.learning.spawn(async move {
                    let learning = AssertUnwindSafe(robots::learn(&shared, &spider, &origin)).catch_unwind();
                    let learnt = learning.await.unwrap_or(Learnt::Panicked);
                    (origin, learnt)
                });
                return;
            }
            None => Duration::ZERO,
        };
        self.settle(job, Outcome::Deferred { until: UnixMs::now().plus(waited.max(SOON)) }).await;
    }

    /// What waited for a robots.txt goes on.
    async fn go_on(&mut self, origin: &Origin, learnt: Learnt) {
        let jobs = self.unclear.remove(origin).map_or_else(Vec::new, |unclear| unclear.jobs);
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

    /// Has no record to settle.
    async fn refuse(&self, message: &Message) {
        for receipt in self.shared.hands.let_go(&claim(message)) {
            let reason = format!("there is no crawl {}", message.crawl.id);
            let malformed = Malformed { text: message.url.to_string(), reason };
            self.pass_on(Settlement::Malformed(malformed, receipt)).await;
        }
    }

    async fn let_be(&self, message: Message, outcome: Outcome) {
        self.pass_on(Settlement::untouched(message, outcome)).await;
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
