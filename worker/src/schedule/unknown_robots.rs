//! Jobs that wait in a worker for a robots.txt.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use trawl_common::open_files;
use trawl_common::politeness::robots::RobotsKey;
use trawl_common::web::url::Origin;

use super::Scheduling;
use super::robots::{self, Learnt};
use crate::job::Job;
use crate::schedule::domains::SLOW;

/// Maximum number of jobs that wait for one slow robots.txt: more would keep out those of other hosts.
const MOST_OF_ONE: usize = 16;

/// The time within which most files arrive; retrying by way of the broker takes a second. Within this time
/// any number of jobs waits for a file, and while there is no room for more, no jobs are scheduled.
const AT_ONCE: Duration = Duration::from_millis(250);

/// Jobs that wait for a robots.txt, and since when it is being fetched.
struct Waiting {
    since: Instant,
    jobs: Vec<Job>,
}

impl Waiting {
    /// Whether another job may wait for it.
    fn has_space(&self) -> bool {
        let waited = self.since.elapsed();
        waited < AT_ONCE || waited < SLOW && self.jobs.len() < MOST_OF_ONE
    }
}

/// The waiting jobs, by the file that they wait for.
#[derive(Default)]
pub(super) struct UnknownRobots {
    waiting: HashMap<RobotsKey, Waiting>,
    /// The number of waiting jobs.
    jobs: usize,
    /// The fetches of the files.
    learning: JoinSet<(RobotsKey, Learnt)>,
}

impl UnknownRobots {
    /// The number of waiting jobs.
    pub(super) fn jobs(&self) -> usize {
        self.jobs
    }

    /// The time until which a file that jobs wait for may still arrive quickly.
    pub(super) fn may_come_until(&self) -> Option<Instant> {
        let oldest = self.waiting.values().map(|waiting| waiting.since).min()?;
        Some(oldest + AT_ONCE).filter(|&until| until > Instant::now())
    }

    /// The time at which the next of the awaited files counts as slow.
    pub(super) fn some_slow_at(&self) -> Option<Instant> {
        let awaited = self.waiting.values().filter(|waiting| !waiting.jobs.is_empty());
        awaited.map(|waiting| waiting.since + SLOW).min()
    }

    /// Takes the jobs that wait for slow files.
    pub(super) fn take_slow(&mut self) -> Vec<Job> {
        let slow = self.waiting.values_mut().filter(|waiting| waiting.since.elapsed() >= SLOW);
        let jobs: Vec<Job> = slow.flat_map(|waiting| waiting.jobs.drain(..)).collect();
        self.jobs -= jobs.len();
        jobs
    }

    /// Takes all waiting jobs.
    pub(super) fn take_all(&mut self) -> Vec<Job> {
        self.jobs = 0;
        self.waiting.drain().flat_map(|(_, waiting)| waiting.jobs).collect()
    }

    /// Makes a job wait for the robots.txt of `origin`, with a limited number per file. If there is no room,
    /// or the file is slow, returns the job with the delay after which it is to be tried again: as long as
    /// the others have waited so far, so that a slow file causes few retries. No more files are fetched at
    /// once than the broker's prefetch.
    pub(super) fn add(
        &mut self,
        scheduling: &Arc<Scheduling>,
        origin: Origin,
        job: Job,
        has_space: bool,
    ) -> Option<(Job, Duration)> {
        let may_ask = has_space
            && open_files::has_room()
            && self.waiting.len() < scheduling.context.settings.worker.prefetch.into();
        let key = job.spider.politeness.robots_key(&origin);
        match self.waiting.get_mut(&key) {
            Some(waiting) if has_space && waiting.has_space() => {
                self.jobs += 1;
                waiting.jobs.push(job);
                None
            }
            Some(waiting) => Some((job, waiting.since.elapsed())),
            None if may_ask => {
                let (scheduling, spider) = (Arc::clone(scheduling), Arc::clone(&job.spider));
                self.jobs += 1;
                self.waiting.insert(key.clone(), Waiting { since: Instant::now(), jobs: vec![job] });
                self.learning.spawn(async move {
                    let learning =
                        AssertUnwindSafe(robots::learn(&scheduling, &spider, &origin)).catch_unwind();
                    (key, learning.await.unwrap_or(Learnt::Panicked))
                });
                None
            }
            None => Some((job, Duration::ZERO)),
        }
    }

    /// Waits until the fetch of a file has ended. Returns the jobs that waited for it. Never returns while no
    /// file is being fetched.
    pub(super) async fn next(&mut self) -> (Vec<Job>, Learnt) {
        // A panic of the fetch is caught within it.
        let Some(Ok((key, learnt))) = self.learning.join_next().await else {
            return std::future::pending().await;
        };
        let jobs = self.waiting.remove(&key).map_or_else(Vec::new, |waiting| waiting.jobs);
        self.jobs -= jobs.len();
        (jobs, learnt)
    }
}
