//! The sessions of this process, from joining to their ends.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use trawl_common::health::Health;
use trawl_common::names::{RunnerName, WorkerId};
use trawl_common::ports::{Fatal, Joined, Joining, Runner};
use trawl_common::relay::{JoinFleet, JoinedFleet};
use trawl_common::settings::Settings;

use super::Relay;
use super::session::{Begun, Session};
use crate::problem::{Kind, Problem};

/// Shortest time after which what a silent runner holds is given back: a heartbeat comes every 5 s.
const MIN_LEASE: Duration = Duration::from_secs(30);

/// Interval at which the access of a runner is looked up.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of URLs and of tasks that a runner holds.
const MAX_HELD: (u16, u16) = (512, 64);

/// Maximum number of processes to remember that another has taken the place of.
const MAX_REPLACED: usize = 8;

/// The present session of each runner.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<RunnerName, Arc<Session>>>);

impl Sessions {
    /// Returns the session of a runner.
    pub(super) fn of(&self, name: &RunnerName) -> Option<Arc<Session>> {
        self.0.lock().get(name).filter(|session| !session.ended.is_cancelled()).cloned()
    }

    /// Returns the session in whose place this one is.
    fn insert(&self, name: &RunnerName, session: &Arc<Session>) -> Option<Arc<Session>> {
        self.0.lock().insert(name.clone(), Arc::clone(session))
    }

    fn remove(&self, name: &RunnerName, session: &Arc<Session>) {
        let mut all = self.0.lock();
        if all.get(name).is_some_and(|present| Arc::ptr_eq(present, session)) {
            all.remove(name);
        }
    }
}

/// Begins a session, in place of the one that the runner had.
pub(super) async fn join(
    relay: &Arc<Relay>,
    runner: Runner,
    JoinFleet { process, prefetch, tasks }: JoinFleet,
) -> Result<JoinedFleet, Problem> {
    let name = runner.name.clone();
    if runner.assigned().next().is_none() {
        return Err(Problem::new(Kind::Forbidden, format_args!("the runner {name} waits to be approved")));
    }
    let mut replaced = Vec::new();
    if let Some(before) = relay.sessions.of(&name) {
        if before.replaced.contains(&process) {
            let detail = "another process works under this name and key: give each machine its own";
            return Err(Problem::new(Kind::Forbidden, detail));
        }
        replaced.extend(before.replaced.iter().chain([&before.process]).filter(|other| **other != process));
        replaced.drain(..replaced.len().saturating_sub(MAX_REPLACED));
        before.end().await;
    }
    let engine = relay.engine().await?;
    let mut settings = Settings::clone(&relay.settings);
    settings.worker.prefetch = prefetch.clamp(1, MAX_HELD.0);
    let worker = WorkerId::of_runner(&name);
    let (health, stop) = (Arc::<Health>::default(), relay.stop.child_token());
    let Joined { frontier, maintenance } = engine.ports.engine.join(Joining {
        worker: worker.clone(),
        settings,
        health: Arc::clone(&health),
        requests: relay.requests(),
        tasks: tasks.min(MAX_HELD.1),
        stop: stop.clone(),
    });
    let id = format!("{:032x}", rand::random::<u128>());
    let begun = Begun { id: id.clone(), process, replaced, worker: worker.clone() };
    let session = Arc::new(Session::new(begun, runner, Arc::clone(relay), engine, (frontier, stop)));
    let replaced = relay.sessions.insert(&name, &session);
    info!(runner = %name, %worker, "a runner has joined");
    let lease = relay.settings.recovery.lost_after.max(MIN_LEASE);
    tokio::spawn(watch(session, maintenance, health, lease));
    if let Some(replaced) = replaced {
        // It may have joined since this one looked.
        replaced.end().await;
    }
    Ok(JoinedFleet { session: id, worker, lease })
}

/// Drives a session until it ends: because its runner is silent, or has lost its access, because the engine fails, or
/// because the API stops.
async fn watch(
    session: Arc<Session>,
    maintenance: Pin<Box<dyn Future<Output = Fatal> + Send>>,
    health: Arc<Health>,
    lease: Duration,
) {
    let name = session.runner().name.clone();
    // It goes on until everything is given back.
    let mut maintenance = AbortOnDropHandle::new(tokio::spawn(maintenance));
    let why = tokio::select! {
        ended = &mut maintenance => ended.map_or_else(|error| error.to_string(), |fatal| fatal.0.to_string()),
        error = health.fatal() => error.to_string(),
        why = lapse(&session, lease) => why,
        () = session.ended.cancelled() => "it has left".to_owned(),
        () = session.relay.stop.cancelled() => "the API stops".to_owned(),
    };
    session.end().await;
    session.relay.sessions.remove(&name, &session);
    info!(runner = %name, worker = %session.worker, why, "the session of a runner has ended");
}

/// Waits until the runner is silent for too long, or has no access any more; gives back what it may not work on.
async fn lapse(session: &Session, lease: Duration) -> String {
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let name = session.runner().name.clone();
    loop {
        ticks.tick().await;
        if session.silent_for() > lease {
            return format!("the runner is silent for {lease:?}");
        }
        let known = match session.relay.runners.runner(&name).await {
            Ok(known) => known.filter(|runner| runner.key == session.runner().key),
            // Its access is as it was known last.
            Err(error) => {
                warn!(%error, runner = %name, "the access of a runner cannot be looked up");
                continue;
            }
        };
        let Some(runner) = known.filter(|runner| runner.assigned().next().is_some()) else {
            return "its access was taken back".to_owned();
        };
        let lost = session.update(runner);
        if !lost.is_empty() {
            info!(runner = %name, count = lost.len(), "gives back what a runner may not work on any more");
            let _ = session.frontier.settle(lost).await;
        }
    }
}
