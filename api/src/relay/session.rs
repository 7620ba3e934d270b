//! A runner's part in the engine: what it holds, and what it may speak about.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use trawl_common::frontier::message::Message;
use trawl_common::names::{CrawlRef, ProjectName, SpiderName, WorkerId};
use trawl_common::politeness::robots::RobotsKey;
use trawl_common::ports::{Claim, Disposition, Frontier, Runner, Settlement};
use trawl_common::relay::MAX_BODY_BYTES;
use trawl_common::session::SessionOwner;
use trawl_common::web::url::Host;

use super::replies::Replies;
use super::spiders::CrawlSpider;
use super::{Engine, Relay};
use crate::problem::{Kind, Problem};

/// Maximum number of calls of a session at a time.
const MAX_CALLS: usize = 32;

/// Maximum size of the bodies that are read at a time in a session, in MiB: one of the largest.
const BODIES_MIB: usize = (MAX_BODY_BYTES >> 20) + 1;

/// Maximum number of robots.txt, spiders and ended pieces of work that a session remembers.
const MAX_REMEMBERED: usize = 10_000;

/// The time that giving back may take.
const LAST_WORD: Duration = Duration::from_secs(5);

/// A session.
pub(crate) struct Session {
    pub(super) id: String,
    /// The process that joined, and those that it has taken the place of.
    pub(super) process: u64,
    pub(super) replaced: Vec<u64>,
    pub(super) worker: WorkerId,
    pub(super) relay: Arc<Relay>,
    pub(super) engine: Arc<Engine>,
    pub(super) frontier: Arc<dyn Frontier>,
    pub(super) replies: Replies,
    /// The runner, as it was looked up last.
    runner: Mutex<Arc<Runner>>,
    /// The MiB that bodies of calls may still take.
    pub(super) bodies: Semaphore,
    /// Whether everything was given back.
    is_released: tokio::sync::Mutex<bool>,
    /// Cancelled at the end.
    pub(super) ended: CancellationToken,
    /// Stops the frontier's claims.
    pub(super) stop: CancellationToken,
    called: Mutex<Instant>,
    calls: Arc<Semaphore>,
    state: Mutex<State>,
}

/// The work that a session holds and has held.
#[derive(Default)]
struct State {
    held: HashMap<Claim, Held>,
    /// The spiders whose work was handed out, with its project.
    spiders: HashMap<SpiderName, (ProjectName, Arc<CrawlSpider>)>,
    /// The work that has ended lately.
    ended: Recent<Claim>,
    /// The tasks whose end was logged lately.
    logged: Recent<Claim>,
    /// The robots.txt that the runner was asked to fetch.
    robots: Recent<RobotsKey>,
    /// When a refusal was logged last.
    refused: Option<Instant>,
}

/// Work that a session holds.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) message: Message,
    /// The project that it belongs to.
    pub(super) project: ProjectName,
    /// The project that its crawl belongs to.
    pub(super) of_crawl: ProjectName,
    /// Its spider, as it was when it was handed out.
    pub(super) spider: Arc<CrawlSpider>,
}

/// The latest values, each once.
struct Recent<T> {
    order: VecDeque<T>,
    known: HashSet<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), known: HashSet::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Recent<T> {
    /// Returns whether it is new.
    fn add(&mut self, value: T) -> bool {
        if !self.known.insert(value.clone()) {
            return false;
        }
        self.order.push_back(value);
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    fn remove(&mut self, value: &T) {
        if self.known.remove(value) {
            self.order.retain(|other| other != value);
        }
    }

    fn has(&self, value: &T) -> bool {
        self.known.contains(value)
    }
}

/// The identity of a new session.
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) process: u64,
    pub(super) replaced: Vec<u64>,
    pub(super) worker: WorkerId,
}

impl Session {
    pub(super) fn new(
        Begun { id, process, replaced, worker }: Begun,
        runner: Runner,
        relay: Arc<Relay>,
        engine: Arc<Engine>,
        (frontier, stop): (Arc<dyn Frontier>, CancellationToken),
    ) -> Self {
        let (replies, ended, state) = Default::default();
        Self {
            id,
            process,
            replaced,
            worker,
            relay,
            engine,
            frontier,
            replies,
            runner: Mutex::new(Arc::new(runner)),
            bodies: Semaphore::new(BODIES_MIB),
            is_released: tokio::sync::Mutex::new(false),
            ended,
            stop,
            called: Mutex::new(Instant::now()),
            calls: Arc::new(Semaphore::new(MAX_CALLS)),
            state,
        }
    }

    pub(super) fn runner(&self) -> Arc<Runner> {
        Arc::clone(&self.runner.lock())
    }

    /// Notes that the runner is alive.
    pub(super) fn touch(&self) {
        *self.called.lock() = Instant::now();
    }

    pub(super) fn silent_for(&self) -> Duration {
        self.called.lock().elapsed()
    }

    /// Returns a permit for one more call.
    pub(super) fn permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let busy = || {
            Problem::new(Kind::TooManyRequests, format_args!("a runner makes {MAX_CALLS} calls at a time"))
        };
        Arc::clone(&self.calls).try_acquire_owned().map_err(|_| busy().retry_after(1))
    }

    /// Takes over the present access of the runner. Returns what it holds of projects that it may not work for any more.
    pub(super) fn update(&self, runner: Runner) -> Vec<Settlement> {
        let mut state = self.state.lock();
        let is_lost = |held: &Held| !runner.is_assigned(&held.project);
        let lost: Vec<Claim> =
            state.held.iter().filter(|(_, held)| is_lost(held)).map(|(claim, _)| claim.clone()).collect();
        let released = lost
            .iter()
            .filter_map(|claim| state.held.remove(claim))
            .map(|held| Settlement { message: held.message, disposition: Disposition::Release });
        let released = released.collect();
        state.spiders.retain(|_, (project, _)| runner.is_assigned(project));
        *self.runner.lock() = Arc::new(runner);
        released
    }

    /// Notes what is handed out.
    pub(super) fn hand_out(&self, held: impl IntoIterator<Item = Held>) {
        let mut state = self.state.lock();
        for held in held {
            let spider = &held.message.crawl.spider;
            if state.spiders.len() < MAX_REMEMBERED || state.spiders.contains_key(spider) {
                state.spiders.insert(spider.clone(), (held.project.clone(), Arc::clone(&held.spider)));
            }
            let claim = Claim::new(&held.message);
            state.logged.remove(&claim);
            state.held.insert(claim, held);
        }
    }

    /// Returns work that the runner holds.
    pub(super) fn held(&self, claim: &Claim) -> Option<Held> {
        self.state.lock().held.get(claim).cloned()
    }

    /// Returns whether the runner holds work of a crawl.
    pub(super) fn holds_of(&self, crawl: &CrawlRef) -> bool {
        self.state.lock().held.keys().any(|claim| claim.crawl == *crawl)
    }

    /// Notes that the runner holds this no more.
    pub(super) fn put_down<'a>(&self, claims: impl IntoIterator<Item = &'a Claim>) {
        let mut state = self.state.lock();
        for claim in claims {
            if state.held.remove(claim).is_some() {
                state.ended.add(claim.clone());
            }
        }
    }

    /// Returns whether the runner holds this, or held it lately.
    pub(super) fn knows(&self, claim: &Claim) -> bool {
        let state = self.state.lock();
        state.held.contains_key(claim) || state.ended.has(claim)
    }

    /// Returns whether the runner was given work of a spider.
    pub(super) fn works_for(&self, spider: &SpiderName) -> bool {
        self.state.lock().spiders.contains_key(spider)
    }

    /// Returns whether the runner was given work that may lead to a host.
    pub(super) fn may_visit(&self, host: &Host) -> bool {
        let state = self.state.lock();
        let is_target = |held: &Held| held.message.target().is_some_and(|url| url.host() == *host);
        state.spiders.values().any(|(_, spider)| spider.may_visit(host)) || state.held.values().any(is_target)
    }

    /// Notes the end of a task. Returns whether it is the first since the task was handed out.
    pub(super) fn note_logged(&self, claim: &Claim) -> bool {
        self.state.lock().logged.add(claim.clone())
    }

    /// Returns the spider of a crawl of which the runner holds work.
    pub(super) fn spider_of(&self, crawl: &CrawlRef) -> Option<Arc<CrawlSpider>> {
        let state = self.state.lock();
        let held = state.held.iter().find(|(claim, _)| claim.crawl == *crawl);
        held.map(|(_, held)| Arc::clone(&held.spider))
    }

    /// Returns whether the runner holds work of a spider with this session at a site.
    pub(super) fn holds_session(&self, owner: &SessionOwner) -> bool {
        let state = self.state.lock();
        state.held.values().any(|held| held.spider.spider.session_id().is_some_and(|id| id.owner == *owner))
    }

    pub(super) fn note_robots(&self, key: &RobotsKey) {
        self.state.lock().robots.add(key.clone());
    }

    /// Returns whether the runner was asked to fetch a robots.txt.
    pub(super) fn fetches_robots(&self, key: &RobotsKey) -> bool {
        self.state.lock().robots.has(key)
    }

    /// Logs a refusal, at most one a second.
    pub(super) fn log_refusal(&self, call: &'static str, why: &str) {
        let now = Instant::now();
        let last = self.state.lock().refused.replace(now);
        if last.is_none_or(|last| now - last >= Duration::from_secs(1)) {
            warn!(runner = %self.runner().name, worker = %self.worker, call, why, "refused a call of a runner");
        }
    }

    /// Ends it: everything that it holds is for others when this returns.
    pub(super) async fn end(&self) {
        self.ended.cancel();
        self.stop.cancel();
        let mut is_released = self.is_released.lock().await;
        if std::mem::replace(&mut *is_released, true) {
            return;
        }
        self.state.lock().held.clear();
        match timeout(LAST_WORD, self.frontier.release()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                warn!(%error, worker = %self.worker, "what a runner held is not given back yet")
            }
            Err(_) => warn!(worker = %self.worker, "what a runner held is not given back yet"),
        }
    }
}
