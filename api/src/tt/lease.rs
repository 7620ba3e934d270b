//! Tasks that drones have.
//!
//! For each, a worker of its own joins the engine, takes one task, gives back whatever else it was sent, and leaves when the
//! task has an outcome: because the drone says so, because it took too long, or because it may not work any more. A drone
//! sends no signs of life: the API does, and gives everything back when it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use trawl_common::frontier::ladder::until_another_worker;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Skip};
use trawl_common::frontier::{Task, retry};
use trawl_common::health::Health;
use trawl_common::names::{ProjectName, RunnerName, WorkerId};
use trawl_common::ports::{
    Claimed, Disposition, Error, ErrorKind, Fatal, Frontier, Heartbeat, Joined, Joining, Result, Runner,
    Settlement,
};
use trawl_common::settings::{Retry, Settings};
use trawl_common::time::UnixMs;

use super::outcome::{disposition, ended_task};
use crate::problem::{Kind, Problem};
use crate::relay::{CrawlSpider, Engine, Relay};

/// Maximum number of tasks that a drone has.
const MAX_HELD: usize = 64;

/// Maximum number of calls that wait for a task at a time: of all drones, and of one.
const MAX_CLAIMS: (usize, usize) = (16, 4);

/// The time after which a drone is told that there is no task: it waits for an answer for 5 s.
const CLAIM_TIME: Duration = Duration::from_secs(3);

/// The wait after a task that is for others.
const FOREIGN: Duration = Duration::from_millis(10);

/// The time in which messages arrive that were on their way when a task was taken.
const LATE: Duration = Duration::from_millis(50);

/// The time limit of a task whose spider has no program here.
const TASK_TIME: Duration = Duration::from_secs(3600);

/// The time that giving back may take.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Interval at which the access of a drone is looked up.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of looks for one sign of life.
const CHECKS_PER_BEAT: u64 = 5;

/// The tasks that drones have, by drone and number, and the drones that wait for one.
#[derive(Default)]
pub(super) struct Leases {
    held: Mutex<HashMap<(RunnerName, u64), mpsc::Sender<Word>>>,
    /// A drone for each call that waits.
    waiting: Mutex<Vec<RunnerName>>,
}

/// The right of a call to wait for a task.
struct Waiting {
    leases: Arc<Leases>,
    runner: RunnerName,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiting = self.leases.waiting.lock();
        if let Some(at) = waiting.iter().position(|runner| *runner == self.runner) {
            waiting.swap_remove(at);
        }
    }
}

/// The word of a drone about a task, and the way back for whether it counts.
struct Word {
    said: Said,
    told: oneshot::Sender<bool>,
}

/// A result that a drone says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Done,
    Failed,
    Skipped,
}

/// A task that a drone gets.
pub(super) struct Assigned {
    pub(super) number: u64,
    pub(super) task: Arc<Task>,
    /// Failed attempts so far.
    pub(super) attempts: u32,
    pub(super) max_retries: u32,
    pub(super) time: Duration,
}

impl Leases {
    /// Waits for a task of a project, for a moment.
    pub(super) async fn take(
        self: &Arc<Self>,
        relay: &Arc<Relay>,
        runner: Runner,
        project: ProjectName,
    ) -> std::result::Result<Option<Assigned>, Problem> {
        if self.held.lock().keys().filter(|(name, _)| *name == runner.name).count() >= MAX_HELD {
            let detail = format!("a worker has at most {MAX_HELD} tasks at a time");
            return Err(Problem::new(Kind::TooManyRequests, detail).retry_after(60));
        }
        let Some(waiting) = self.wait(&runner.name) else { return Ok(None) };
        let engine = relay.engine().await?;
        let (told, assigned) = oneshot::channel();
        let told = Told { told, waiting };
        tokio::spawn(hold(Arc::clone(self), Arc::clone(relay), engine, runner, project, told));
        Ok(assigned.await.ok())
    }

    /// Returns the right to wait for a task, unless too many calls do, or too many of this drone.
    fn wait(self: &Arc<Self>, runner: &RunnerName) -> Option<Waiting> {
        let mut waiting = self.waiting.lock();
        let own = waiting.iter().filter(|name| *name == runner).count();
        if waiting.len() >= MAX_CLAIMS.0 || own >= MAX_CLAIMS.1 {
            return None;
        }
        waiting.push(runner.clone());
        Some(Waiting { leases: Arc::clone(self), runner: runner.clone() })
    }

    /// Passes on what a drone says of a task that it has. Returns whether that counts.
    pub(super) async fn end(&self, runner: &RunnerName, number: u64, said: Said) -> bool {
        let holder = self.held.lock().get(&(runner.clone(), number)).cloned();
        let Some(holder) = holder else { return false };
        let (told, counts) = oneshot::channel();
        holder.send(Word { said, told }).await.is_ok() && counts.await.unwrap_or(false)
    }
}

/// The drone that waits for a task. When this is dropped, it is told that there is none.
struct Told {
    told: oneshot::Sender<Assigned>,
    /// Its right to wait.
    waiting: Waiting,
}

/// The place of a task among those that drones have.
struct Place<'a> {
    leases: &'a Leases,
    at: (RunnerName, u64),
    words: mpsc::Receiver<Word>,
}

impl<'a> Place<'a> {
    fn new(leases: &'a Leases, runner: &RunnerName) -> Self {
        // A task has as many numbers as attempts. It is one that every JSON reader takes as it is.
        let at = (runner.clone(), rand::random::<u64>() >> 16 | 1);
        let (holder, words) = mpsc::channel(1);
        leases.held.lock().insert(at.clone(), holder);
        Self { leases, at, words }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leases.held.lock().remove(&self.at);
    }
}

/// Takes a task, tells the drone of it, and holds it to its end.
async fn hold(
    leases: Arc<Leases>,
    relay: Arc<Relay>,
    engine: Arc<Engine>,
    runner: Runner,
    project: ProjectName,
    told: Told,
) {
    let worker = WorkerId::of_runner(&runner.name);
    let mut settings = Settings::clone(relay.settings());
    settings.worker.prefetch = 1;
    let (health, stop) = (Arc::<Health>::default(), CancellationToken::new());
    let Joined { frontier, maintenance } = engine.ports().engine.join(Joining {
        worker: worker.clone(),
        settings,
        health: Arc::clone(&health),
        requests: relay.requests(),
        tasks: 1,
        stop: stop.clone(),
    });
    let holder = Holder { relay: &relay, engine: &engine, runner, project, worker, frontier, stop };
    // It goes on until everything is given back.
    let mut maintenance = AbortOnDropHandle::new(tokio::spawn(maintenance));
    let why = tokio::select! {
        ended = &mut maintenance => ended.map_or_else(|error| error.to_string(), |fatal| fatal.0.to_string()),
        error = health.fatal() => error.to_string(),
        () = relay.stopped() => "the API stops".to_owned(),
        worked = holder.work(&leases, told) => worked.err().map(|error| error.to_string()).unwrap_or_default(),
    };
    if !why.is_empty() {
        warn!(runner = %holder.runner.name, worker = %holder.worker, why, "a drone's task is given back");
    }
    if timeout(LAST_WORD, holder.frontier.release()).await.is_err() {
        warn!(worker = %holder.worker, "a drone's task is not given back yet");
    }
}

/// A worker that holds a task for a drone.
struct Holder<'a> {
    relay: &'a Relay,
    engine: &'a Engine,
    runner: Runner,
    project: ProjectName,
    worker: WorkerId,
    frontier: Arc<dyn Frontier>,
    /// Stops claiming.
    stop: CancellationToken,
}

/// A task that has started, with its spider; `None` if a more urgent one comes first. Or the outcome of one that may not
/// start.
type MayStart = std::result::Result<Option<(Arc<Task>, Arc<CrawlSpider>)>, Outcome>;

/// A task that has started.
struct Started {
    claimed: Claimed,
    task: Arc<Task>,
    policy: Retry,
    time: Duration,
}

impl Holder<'_> {
    /// 1. Takes a task, and nothing after it.
    /// 2. Tells the drone, unless it is gone.
    /// 3. Waits for its word, and settles the task.
    async fn work(&self, leases: &Leases, told: Told) -> Result<()> {
        let Told { told, waiting } = told;
        let Ok(started) = timeout(CLAIM_TIME, self.start()).await else { return Ok(()) };
        drop(waiting);
        let Started { claimed, task, policy, time } = started?;
        self.stop.cancel();
        let (attempts, max_retries) = (claimed.attempts, policy.max);
        let mut place = Place::new(leases, &self.runner.name);
        let number = place.at.1;
        let (key, crawl, name) = (task.key.to_string(), claimed.message.crawl.id.clone(), &self.runner.name);
        let assigned = Assigned { number, task: Arc::clone(&task), attempts, max_retries, time };
        if told.send(assigned).is_err() {
            return Ok(());
        }
        info!(runner = %name, task = key, %crawl, "a drone has a task");
        let began = Instant::now();
        let (said, told) = tokio::select! {
            Some(Word { said, told }) = place.words.recv() => (said, Some(told)),
            overdue = self.watch(&claimed.message, &key, began + time) => match overdue? {
                true => (Said::Failed, None),
                false => return Ok(()),
            },
        };
        let outcome = match said {
            Said::Done => Ok(()),
            Said::Skipped => Err(Outcome::Release),
            Said::Failed => {
                let why = match told {
                    Some(_) => "the program says that it failed (result 1)".to_owned(),
                    None => format!("the drone has said nothing for {time:?}"),
                };
                let failure = Failure::new(Class::Handler, why);
                Err(retry::again(&policy, failure, attempts + 1, UnixMs::now(), rand::random()))
            }
        };
        let disposition = disposition(&claimed.message, &self.worker, attempts + 1, outcome);
        let counts = self.settle(&claimed.message, disposition, began.elapsed()).await?;
        if let Some(told) = told {
            // It may be gone.
            let _ = told.send(counts);
        }
        Ok(())
    }

    /// Waits for a task of the project, and counts its start.
    async fn start(&self) -> Result<Started> {
        loop {
            let Some(claimed) = self.frontier.claim_tasks(1).await.map_err(of_fatal)?.pop() else { continue };
            match self.may_start(&claimed).await? {
                Ok(Some((task, spider))) => {
                    let spider = &spider.spider;
                    let policy =
                        spider.program_retry(&self.relay.settings().retry).with_max(task.new.retries);
                    let time = spider.handler.as_ref().map_or(TASK_TIME, |handler| handler.timeout);
                    return Ok(Started { claimed, task, policy, time });
                }
                Ok(None) => {}
                Err(outcome) => {
                    let is_foreign = matches!(outcome, Outcome::Requeue { .. });
                    let Claimed { message, attempts, .. } = claimed;
                    let disposition = disposition(&message, &self.worker, attempts, Err(outcome));
                    self.settle(&message, disposition, Duration::ZERO).await?;
                    if is_foreign {
                        sleep(FOREIGN).await;
                    }
                }
            }
        }
    }

    /// Counts the start of a task, if it is one for the drone.
    async fn may_start(&self, claimed: &Claimed) -> Result<MayStart> {
        let Claimed { message, is_beyond_limit, crawl, .. } = claimed;
        let foreign = || Outcome::Requeue { until: UnixMs::now().plus(until_another_worker(message.left)) };
        let Some(task) = message.work.task() else { return Ok(Err(foreign())) };
        if self.engine.project_of(message).await? != self.project {
            return Ok(Err(foreign()));
        }
        let spider = match self.engine.spider_of(&message.crawl, &crawl.terms).await {
            Err(error) if error.kind == ErrorKind::Refused => return Ok(Err(foreign())),
            spider => spider?,
        };
        if *is_beyond_limit {
            return Ok(Err(Outcome::Skipped(Skip::Limit)));
        }
        if message.is_expired(UnixMs::now()) {
            return Ok(Err(Outcome::Expired));
        }
        match self.frontier.start_task(claimed).await.map_err(of_fatal)? {
            None => Ok(Ok(None)),
            Some(start) => Ok(start.outcome().map_or_else(|| Ok(Some((Arc::clone(task), spider))), Err)),
        }
    }

    /// Waits until a task that is held is overdue, or not the drone's any more. Returns whether it is overdue.
    async fn watch(&self, message: &Message, key: &str, until: Instant) -> Result<bool> {
        let since = UnixMs::now();
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for look in 0_u64.. {
            ticks.tick().await;
            if Instant::now() >= until {
                return Ok(true);
            }
            if !self.is_allowed().await {
                return Ok(false);
            }
            if look.is_multiple_of(CHECKS_PER_BEAT) {
                self.give_back_others().await?;
                if self.frontier.extend(&[message]).await.map_err(of_fatal)? != [true] {
                    info!(task = key, worker = %self.worker, "a drone has a task that was cancelled, or that another has");
                    return Ok(false);
                }
                let beat = Heartbeat::idle(self.worker.clone());
                // Nothing depends on it.
                let _ = self
                    .frontier
                    .beat(&Heartbeat { in_flight: 1, running: [(key.to_owned(), since)].into(), ..beat })
                    .await;
            }
        }
        unreachable!("numbers do not end")
    }

    /// Returns whether the drone may do the project's work still, as far as is known.
    async fn is_allowed(&self) -> bool {
        match self.relay.runners().runner(&self.runner.name).await {
            Ok(known) => {
                known.is_some_and(|known| known.key == self.runner.key && known.is_assigned(&self.project))
            }
            // Its access is as it was known last.
            Err(_) => true,
        }
    }

    /// Gives back messages that were on their way when the task was taken.
    async fn give_back_others(&self) -> Result<()> {
        loop {
            let others = tokio::select! {
                urls = self.frontier.claim(usize::from(u16::MAX)) => urls,
                tasks = self.frontier.claim_tasks(usize::from(u16::MAX)) => tasks,
                () = sleep(LATE) => return Ok(()),
            };
            let release =
                |claimed: Claimed| Settlement { message: claimed.message, disposition: Disposition::Release };
            let others = others.map_err(of_fatal)?.into_iter().map(release).collect();
            self.frontier.settle(others).await.map_err(of_fatal)?;
        }
    }

    /// Settles a task. Returns whether it is settled so, and notes how it ended, if it did.
    async fn settle(&self, message: &Message, disposition: Disposition, took: Duration) -> Result<bool> {
        let is_end = matches!(disposition, Disposition::Finish(_));
        let settlement = Settlement { message: message.clone(), disposition };
        let settled = self.frontier.settle(vec![settlement]).await.map_err(of_fatal)?;
        for ended in &settled.ended {
            let entry = ended_task(&self.worker, message, ended, took);
            if let Err(error) = self.engine.ports().ended_tasks.append(&[entry]).await {
                warn!(%error, "the end of a task is not in the list of ended ones");
            }
        }
        Ok(if is_end { !settled.ended.is_empty() } else { settled.not_stored.is_empty() })
    }
}

/// Returns the error that ends a worker.
fn of_fatal(Fatal(error): Fatal) -> Error {
    error
}
