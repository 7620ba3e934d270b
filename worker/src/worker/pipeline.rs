//! The stages of a worker, and the channels between them.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::Worker;
use crate::claim::{Claims, CrawlSpiders};
use crate::fetch::dispatcher;
use crate::schedule::{Exits, Scheduler};
use crate::store::Storage;
use crate::tasks::Tasks;
use crate::{settle, store};

/// Maximum number of batches of URLs waiting for their starts to be counted. Each URL has a fetch permit.
const STARTS_AHEAD: usize = 4;

/// Maximum number of outcomes waiting to be settled.
const SETTLEMENTS_AHEAD: usize = 1024;

impl Worker {
    /// Starts the stages. Each ends when the one before it has ended and its channel is empty.
    pub(super) fn spawn_pipeline(&self) -> JoinSet<()> {
        let Self { context, frontier, idle_reasons, stop, .. } = self;
        let (ready, to_start) = mpsc::channel(STARTS_AHEAD);
        let (store, to_store) = mpsc::channel(SETTLEMENTS_AHEAD);
        let (settle, to_settle) = mpsc::channel(SETTLEMENTS_AHEAD);
        let (of, texts) = (Arc::clone(&self.spiders), Arc::clone(&self.texts));
        let spiders = CrawlSpiders::new(of, texts, Arc::clone(&context.health));
        let mut pipeline = JoinSet::new();

        let (claiming, idle) = (Arc::clone(frontier), Arc::clone(idle_reasons));
        let lateness = Arc::clone(&self.scheduling.lateness);
        let claims = Claims::new(claiming, idle, lateness, spiders.clone(), store.clone());
        let exits = Exits { ready, settle: store.clone() };
        pipeline.spawn(self.scheduler(exits, claims).run());

        if let Some((runner, at_once)) = &self.tasks {
            let tasks = Tasks {
                context: Arc::clone(context),
                frontier: Arc::clone(frontier),
                idle_reasons: Arc::clone(idle_reasons),
                watch: Arc::clone(&self.watch),
                runner: Arc::clone(runner),
                spiders,
                at_once: *at_once,
                settle: store.clone(),
                suspects: Arc::new(Semaphore::new(1)),
            };
            pipeline.spawn(tasks.run(stop.clone()));
        }

        pipeline.spawn(dispatcher::run(Arc::clone(&self.fetching), to_start, store, stop.clone()));
        let storage = Storage { context: Arc::clone(context), frontier: Arc::clone(frontier) };
        pipeline.spawn(store::run(Arc::new(storage), to_store, settle));
        pipeline.spawn(settle::run(Arc::clone(&self.settler), to_settle));
        pipeline
    }

    fn scheduler(&self, exits: Exits, claims: Claims) -> Scheduler {
        let (scheduling, sessions) = (Arc::clone(&self.scheduling), Arc::clone(&self.sessions));
        Scheduler::new(scheduling, sessions, exits, claims, self.stop.clone())
    }
}
