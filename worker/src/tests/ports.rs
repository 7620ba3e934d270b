//! Ports in memory that write down what they are asked. Time is the test's.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::crawl::{CrawlStats, HostStats};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{Key, Start, Task, UrlState};
use trawl_common::health::Health;
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::politeness::gcra::{Schedule, Slot};
use trawl_common::politeness::robots::RobotsKey;
use trawl_common::ports::{
    Activity, Backlog, BackoffRequest, BeatReply, Cache, Claim, Claimed, Ended, Engine, Error, ErrorKind,
    Frontier, Heartbeat, HostSlotRequest, Hosts, InFlightRequest, Joined, Joining, LaneState, NewWork,
    OpenCrawl, Opening, Page, Places, Ports, Response, Result, RobotsEntry, RobotsFile, Seen, SeenUrls,
    Session, Settled, Settlement, Sink, SinkFactory, Stats, TaskPage, Terms, Vanished, Verdict, WorkerState,
};
use trawl_common::spider::{Spider, SpiderText};
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;
use trawl_testkit::stand_ins::NoPages;

/// What a host's schedule does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Schedules {
    /// It answers.
    #[default]
    Answer,
    /// It leaves out the last answer.
    Short,
    /// It refuses every call.
    Refuse,
    /// It is away for so many calls.
    Away(u32),
}

/// All ports of one worker.
#[derive(Clone, Default)]
pub(super) struct Memory {
    state: Arc<Mutex<State>>,
    some_queued: Arc<Notify>,
    some_tasks: Arc<Notify>,
}

struct State {
    begun: Instant,
    calls: Vec<String>,
    queue: VecDeque<Claimed>,
    tasks: VecDeque<Claimed>,
    /// What pages and tasks led to.
    links: Vec<NewWork>,
    held: BTreeSet<Key>,
    /// What is no longer the worker's.
    lost: BTreeSet<Key>,
    /// What is not any more as soon as some of it is stored.
    lost_when_stored: BTreeSet<Key>,
    /// How often a fetch of a URL has begun that never ended.
    begun_before: HashMap<String, u32>,
    starts: HashMap<String, Start>,
    pages: HashMap<String, Duration>,
    hosts: HashMap<HostKey, Schedule>,
    schedules: Schedules,
    /// Whether no settlement can be written any more.
    refuses_settlement: bool,
    /// How often the sink still refuses pages.
    sink_refusals: u32,
    health: Arc<Health>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            calls: Vec::new(),
            queue: VecDeque::new(),
            tasks: VecDeque::new(),
            links: Vec::new(),
            held: BTreeSet::new(),
            lost: BTreeSet::new(),
            lost_when_stored: BTreeSet::new(),
            begun_before: HashMap::new(),
            starts: HashMap::new(),
            pages: HashMap::new(),
            hosts: HashMap::new(),
            schedules: Schedules::default(),
            refuses_settlement: false,
            sink_refusals: 0,
            health: Arc::default(),
        }
    }
}

impl Memory {
    /// These, as a worker is given them.
    pub(super) fn ports(&self) -> Ports {
        let memory = Arc::new(self.clone());
        // Nobody asks for jobs, or commands crawls.
        let idle = Embedded::in_memory().unwrap();
        Ports {
            engine: memory.clone(),
            stats: memory.clone(),
            hosts: memory.clone(),
            cache: memory,
            pages: Arc::new(NoPages),
            jobs: idle.jobs(),
            spider_store: idle.spider_store(),
            schedules: idle.schedules(),
            control: idle.control(),
            sink_factory: Arc::new(Items(self.clone())),
            logs: idle.logs(),
            history: None,
        }
    }

    /// Queues a URL whose page comes after so long, or never.
    pub(super) fn page(&self, url: &str, takes: Option<Duration>) {
        if let Some(takes) = takes {
            self.state().pages.insert(url.to_owned(), takes);
        }
        self.queue(Message::seed(url.parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk));
    }

    /// What pages and tasks led to that have ended.
    pub(super) fn links(&self) -> Vec<NewWork> {
        self.state().links.clone()
    }

    /// Queues a task of the default spider; returns its key.
    pub(super) fn task(&self, line: &str) -> Key {
        let crawl = CrawlRef::adhoc();
        let task = Task::new(&crawl.spider, NewTask::from_line(line).unwrap());
        let message = Message::of(task.into(), crawl, Lane::Task);
        let key = message.key();
        self.queue(message);
        key
    }

    fn queue(&self, message: Message) {
        let mut state = self.state();
        let starts = state.begun_before.get(message.work.as_str()).copied().unwrap_or_default();
        let crawl = OpenCrawl { terms: Terms::default(), started: UnixMs::now() };
        let claimed = Claimed { message, attempts: 0, starts, is_beyond_limit: false, crawl };
        if claimed.message.lane == Lane::Task {
            state.tasks.push_back(claimed);
            self.some_tasks.notify_one();
        } else {
            state.queue.push_back(claimed);
            self.some_queued.notify_one();
        }
    }

    /// A URL whose fetch has begun so often and never ended; to be said before its page is queued.
    pub(super) fn has_begun(&self, url: &str, starts: u32) {
        self.state().begun_before.insert(url.to_owned(), starts);
    }

    /// What the frontier says of a URL that is to start.
    pub(super) fn is_started(&self, url: &str, start: Start) {
        self.state().starts.insert(url.to_owned(), start);
    }

    pub(super) fn schedules(&self, schedules: Schedules) {
        self.state().schedules = schedules;
    }

    /// A URL or a task is no longer the worker's.
    pub(super) fn loses(&self, key: &Key) {
        self.state().lost.insert(key.clone());
    }

    /// A task is no longer the worker's as soon as any of its items are stored.
    pub(super) fn is_lost_when_stored(&self, key: &Key) {
        self.state().lost_when_stored.insert(key.clone());
    }

    /// No settlement can be written from now on.
    pub(super) fn refuse_settlement(&self) {
        self.state().refuses_settlement = true;
    }

    /// The sink refuses the next pages so often.
    pub(super) fn sink_refuses(&self, times: u32) {
        self.state().sink_refusals = times;
    }

    /// The calls so far, each with the URL or host that it was for, and after how long, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Waits until so many calls of this name were made.
    pub(super) async fn until(&self, name: &str, count: usize) {
        while self.calls().iter().filter(|call| call.starts_with(name)).count() < count {
            sleep(Duration::from_millis(1)).await;
        }
    }

    pub(super) fn called(&self, name: &str, of: impl std::fmt::Display) {
        self.state().calls.push(format!("{name} {of}"));
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

#[async_trait]
impl Engine for Memory {
    fn join(&self, Joining { health, .. }: Joining) -> Joined {
        self.state().health = health;
        Joined { frontier: Arc::new(self.clone()), maintenance: Box::pin(pending()) }
    }

    async fn open(&self, _: Opening, _: Arc<Health>) -> Result<Box<dyn Session>> {
        unreachable!("a worker opens no crawl")
    }

    async fn replay(&self, _: &CrawlRef, _: &CrawlRef, _: &[Key]) -> Result<u64> {
        unreachable!("a worker replays nothing")
    }
}

#[async_trait]
impl Frontier for Memory {
    async fn claim(&self, max: usize) -> Vec<Claimed> {
        loop {
            let claimed: Vec<Claimed> = {
                let queue = &mut self.state().queue;
                let count = queue.len().min(max);
                queue.drain(..count).collect()
            };
            if !claimed.is_empty() {
                self.state().held.extend(claimed.iter().map(|claimed| claimed.message.key()));
                return claimed;
            }
            self.some_queued.notified().await;
        }
    }

    async fn claim_tasks(&self, max: usize) -> Vec<Claimed> {
        loop {
            let claimed: Vec<Claimed> = {
                let tasks = &mut self.state().tasks;
                let count = tasks.len().min(max);
                tasks.drain(..count).collect()
            };
            if !claimed.is_empty() {
                self.state().held.extend(claimed.iter().map(|claimed| claimed.message.key()));
                return claimed;
            }
            self.some_tasks.notified().await;
        }
    }

    async fn start(&self, urls: &[Claim]) -> Result<Vec<Start>> {
        urls.iter().for_each(|claim| self.called("start", &claim.key));
        let state = self.state();
        let start = |claim: &Claim| state.starts.get(claim.key.as_str()).copied().unwrap_or(Start::Go);
        Ok(urls.iter().map(start).collect())
    }

    async fn extend(&self, urls: &[&Message]) -> Vec<bool> {
        let state = self.state();
        urls.iter().map(|url| !state.lost.contains(&url.key())).collect()
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Settled {
        let refuses = self.state().refuses_settlement;
        if refuses {
            let health = Arc::clone(&self.state().health);
            let refused = || async { Err(Error::new(ErrorKind::Refused, "no permission")) };
            return health.until_done("finishing", refused).await;
        }
        let mut settled = Settled::default();
        for Settlement { message, verdict } in batch {
            self.state().held.remove(&message.key());
            let url = &message.work;
            match verdict {
                Verdict::Ends(ending) => {
                    let terminal = ending.finish.terminal.as_str();
                    match &ending.dead_letter {
                        Some(cause) => {
                            self.called("settle", format_args!("{url} {terminal} {}", cause.reason))
                        }
                        None => self.called("settle", format_args!("{url} {terminal}")),
                    }
                    self.state().links.extend(ending.links.iter().cloned());
                    settled.ended.push(*ending);
                }
                Verdict::PutAside { until, .. } | Verdict::LeftToOthers { until } => {
                    self.called("put aside", url);
                    let (memory, wait) = (self.clone(), until.wait_from(UnixMs::now()));
                    tokio::spawn(async move {
                        sleep(wait).await;
                        // The instant itself is on a clock that no test turns.
                        memory.queue(Message { until: None, ..message });
                    });
                }
                Verdict::GoesRound => {
                    self.called("goes round", url);
                    self.queue(message);
                }
                Verdict::Released => self.called("release", url),
            }
        }
        settled
    }

    async fn release(&self) {
        let held = std::mem::take(&mut self.state().held);
        held.iter().for_each(|url| self.called("release", url));
    }

    async fn has_seen(&self, _crawl: &CrawlRef, _url: &CanonicalUrl) -> bool {
        false
    }

    async fn beat(&self, _beat: &Heartbeat) -> Result<BeatReply> {
        Ok(BeatReply::GoOn)
    }

    fn activity(&self) -> Activity {
        Activity { in_flight: self.state().held.len(), unproven: 0 }
    }
}

#[async_trait]
impl Stats for Memory {
    async fn crawl_stats(&self, _: &CrawlId) -> Result<Option<CrawlStats>> {
        unreachable!("a worker has no stats to see")
    }

    async fn crawls(&self) -> Result<Vec<CrawlStats>> {
        unreachable!("a worker has no stats to see")
    }

    async fn hosts(&self, _: &CrawlRef, _: usize) -> Result<Vec<HostStats>> {
        unreachable!("a worker has no stats to see")
    }

    async fn backlog(&self, _: &CrawlRef) -> Result<Backlog> {
        unreachable!("a worker has no stats to see")
    }

    async fn terms(&self, _: &CrawlRef) -> Result<Terms> {
        unreachable!("a worker has no stats to see")
    }

    async fn spider_text(&self, _: &CrawlRef) -> Result<Option<SpiderText>> {
        unreachable!("no crawl was opened with a file")
    }

    async fn url_state(&self, _: &CrawlRef, _: &Key) -> Result<UrlState> {
        unreachable!("a worker has no stats to see")
    }

    async fn tasks(&self, _: &CrawlRef, _: u64) -> Result<TaskPage> {
        unreachable!("a worker has no stats to see")
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        unreachable!("a worker has no stats to see")
    }

    async fn vanished(&self) -> Result<Vec<Vanished>> {
        unreachable!("a worker has no stats to see")
    }

    async fn places(&self, _: &CrawlRef) -> Result<Places> {
        unreachable!("a worker has no stats to see")
    }

    async fn seen(&self, _: &SpiderName) -> Result<Option<u64>> {
        unreachable!("a worker has no stats to see")
    }

    async fn walk_seen(&self, _: &SpiderName, _: u64) -> Result<SeenUrls> {
        unreachable!("a worker has no stats to see")
    }

    async fn seen_urls(&self, _: &SpiderName, _: &[CanonicalUrl]) -> Result<Vec<Seen>> {
        unreachable!("a worker has no stats to see")
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        unreachable!("a worker has no stats to see")
    }
}

#[async_trait]
impl Hosts for Memory {
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
        let mut state = self.state();
        let now = 1_700_000_000_000_000 + state.begun.elapsed().as_micros() as u64;
        let mut slots = Vec::new();
        for HostSlotRequest { key, request } in asks {
            state.calls.push(format!("reserve {key}"));
            slots.push(state.hosts.entry(key.clone()).or_default().reserve(request, now));
        }
        match &mut state.schedules {
            Schedules::Answer | Schedules::Away(0) => {}
            Schedules::Short => drop(slots.pop()),
            Schedules::Refuse => return Err(Error::new(ErrorKind::Refused, "no permission")),
            Schedules::Away(calls) => {
                *calls -= 1;
                return Err(Error::new(ErrorKind::Unavailable, "away"));
            }
        }
        Ok(slots)
    }

    async fn stay(&self, _visits: &[InFlightRequest], _lapse: Duration) -> Result<()> {
        Ok(())
    }

    async fn leave(&self, ended: &[Ended]) -> Result<()> {
        let mut state = self.state();
        let now = 1_700_000_000_000_000 + state.begun.elapsed().as_micros() as u64;
        for Ended { visit, is_welcome } in ended {
            if let Some(schedule) = state.hosts.get_mut(&visit.key) {
                schedule.leave(visit.token, *is_welcome, now);
            }
        }
        Ok(())
    }

    async fn push_back(&self, _key: &HostKey, _refusal: &BackoffRequest) -> Result<UnixMs> {
        unreachable!("no host refuses")
    }

    async fn robots(&self, _key: &RobotsKey, _lease: Duration) -> Result<RobotsEntry> {
        unreachable!("robots.txt is not obeyed")
    }

    async fn keep_robots(&self, _: &RobotsKey, _: &RobotsFile, _: Duration) -> Result<()> {
        unreachable!("robots.txt is not obeyed")
    }

    async fn give_up_robots(&self, _key: &RobotsKey) -> Result<()> {
        unreachable!("robots.txt is not obeyed")
    }
}

#[async_trait]
impl Cache for Memory {
    /// Stands for the web: each page comes after its time.
    async fn get(&self, url: &CanonicalUrl) -> Result<Option<Response>> {
        self.called("ask for", url);
        let takes = self.state().pages.get(url.as_str()).copied();
        match takes {
            Some(takes) => sleep(takes).await,
            None => pending().await,
        }
        self.called("fetched", url);
        Ok(Some(Response {
            status: 200,
            headers: [("content-type", "text/html")].into_iter().collect(),
            redirected_to: None,
            fetched_at: UnixMs::now(),
            address: None,
            body: "<title>a page</title><p>text".into(),
        }))
    }

    async fn put(&self, _url: &CanonicalUrl, _response: &Response, _ttl: Duration) -> Result<()> {
        unreachable!("nothing is fetched from elsewhere")
    }
}

/// The one sink.
struct Items(Memory);

impl SinkFactory for Items {
    fn open(&self, _spider: &Spider) -> Result<Vec<Arc<dyn Sink>>> {
        Ok(vec![Arc::new(Items(self.0.clone()))])
    }
}

#[async_trait]
impl Sink for Items {
    fn name(&self) -> &str {
        "memory"
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        let refusals = self.0.state().sink_refusals;
        if refusals > 0 {
            self.0.state().sink_refusals = refusals - 1;
            self.0.called("refuse", self.name());
            return Err(Error::new(ErrorKind::Refused, "there is no column `price`"));
        }
        for page in pages {
            self.0.called("store", &page.key);
            let mut state = self.0.state();
            if state.lost_when_stored.remove(&page.key) {
                state.lost.insert(page.key.clone());
            }
        }
        Ok(())
    }
}
