//! Ports in memory that write down what they are asked. Time is the test's.

mod frontier;
mod hosts;
mod pages;
mod projects;
mod texts;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{Key, StartReply, Task, Work};
use trawl_common::names::CrawlRef;
use trawl_common::politeness::gcra::Schedule;
use trawl_common::ports::{Claimed, NewWork, OpenCrawl, Terms, WorkerPorts};
use trawl_common::request::NewRequest;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_testkit::stand_ins::NoPages;

pub(in crate::tests) use self::hosts::Schedules;
use self::pages::Items;
use self::projects::NoProjects;

/// All ports of one worker.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    state: Arc<Mutex<State>>,
    some_queued: Arc<Notify>,
    some_tasks: Arc<Notify>,
}

struct State {
    /// By the clock that no test turns, and by the one that it does.
    began: UnixMs,
    begun: Instant,
    calls: Vec<String>,
    queue: VecDeque<Claimed>,
    tasks: VecDeque<Claimed>,
    /// The links of pages and the requests of tasks.
    links: Vec<NewWork>,
    held: BTreeSet<Key>,
    /// URLs and tasks that are no longer the worker's.
    lost: BTreeSet<Key>,
    /// Tasks that are no longer the worker's as soon as some of their items are stored.
    lost_when_stored: BTreeSet<Key>,
    /// How often a fetch of a URL has begun that never ended.
    begun_before: HashMap<String, u32>,
    starts: HashMap<String, StartReply>,
    /// Whether the next task that is to begin comes behind others.
    comes_behind: bool,
    pages: HashMap<String, Duration>,
    hosts: HashMap<HostKey, Schedule>,
    schedules: Schedules,
    /// The time that the robots.txt of a name takes.
    robots_of_names: Duration,
    /// Whether no settlement can be written any more.
    refuses_settlement: bool,
    /// The URL whose page has many links, which are never taken in.
    links_without_end: Option<String>,
    /// How often the sink still refuses pages.
    sink_refusals: u32,
    /// Number of heartbeats that are still refused, as if the server were away.
    missed_beats: u32,
}

impl Default for State {
    fn default() -> Self {
        Self {
            began: UnixMs::now(),
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
            comes_behind: false,
            pages: HashMap::new(),
            hosts: HashMap::new(),
            schedules: Schedules::default(),
            robots_of_names: Duration::ZERO,
            refuses_settlement: false,
            links_without_end: None,
            sink_refusals: 0,
            missed_beats: 0,
        }
    }
}

impl Memory {
    /// These, as a worker is given them.
    pub(in crate::tests) fn ports(&self) -> WorkerPorts {
        let memory = Arc::new(self.clone());
        // Nobody commands crawls.
        let idle = Embedded::in_memory().unwrap();
        WorkerPorts {
            engine: memory.clone(),
            texts: memory.clone(),
            hosts: memory.clone(),
            cache: memory,
            pages: Arc::new(NoPages),
            sessions: idle.sessions(),
            control: idle.control(),
            grants: Arc::new(NoProjects),
            sink_factory: Arc::new(Items(self.clone())),
            logs: idle.logs(),
            ended_tasks: idle.ended_tasks(),
            history: None,
        }
    }

    /// Queues a URL whose page comes after so long, or never.
    pub(in crate::tests) fn page(&self, url: &str, takes: Option<Duration>) {
        if let Some(takes) = takes {
            self.state().pages.insert(url.to_owned(), takes);
        }
        self.queue(Message::seed(url.parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk));
    }

    /// Queues a URL that a page links to.
    pub(in crate::tests) fn link(&self, page: &str, url: &str) {
        let referrer = Some(page.parse().unwrap());
        let message = Message::seed(url.parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk);
        self.queue(Message { referrer, ..message });
    }

    /// Sets the time that the robots.txt of a name takes.
    pub(in crate::tests) fn robots_of_names_take(&self, takes: Duration) {
        self.state().robots_of_names = takes;
    }

    /// Gives the page of a URL many links, whose taking in never ends.
    pub(in crate::tests) fn has_links_without_end(&self, url: &str) {
        self.state().links_without_end = Some(url.to_owned());
    }

    /// Queues a request for a URL, with a priority; returns its key.
    pub(in crate::tests) fn request(&self, url: &str, priority: f64) -> Key {
        let new = NewRequest { priority: priority.try_into().unwrap(), ..NewRequest::get(url) };
        let work = Work::of_request(url.parse().unwrap(), new).unwrap();
        let message = Message::new(work, CrawlRef::adhoc(), Lane::Bulk);
        let key = message.key();
        self.queue(message);
        key
    }

    /// Returns the links and requests of pages and tasks that have ended.
    pub(in crate::tests) fn links(&self) -> Vec<NewWork> {
        self.state().links.clone()
    }

    /// Queues a task of the default spider; returns its key.
    pub(in crate::tests) fn task(&self, line: &str) -> Key {
        let crawl = CrawlRef::adhoc();
        let task = Task::new(&crawl.spider, NewTask::from_line(line).unwrap());
        let message = Message::new(task.into(), crawl, Lane::Task);
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
    pub(in crate::tests) fn has_begun(&self, url: &str, starts: u32) {
        self.state().begun_before.insert(url.to_owned(), starts);
    }

    /// Sets the reply of the frontier to the start of a URL.
    pub(in crate::tests) fn set_start(&self, url: &str, start: StartReply) {
        self.state().starts.insert(url.to_owned(), start);
    }

    /// The next task that is to begin comes behind those that are queued.
    pub(in crate::tests) fn comes_behind(&self) {
        self.state().comes_behind = true;
    }

    pub(in crate::tests) fn schedules(&self, schedules: Schedules) {
        self.state().schedules = schedules;
    }

    /// A URL or a task is no longer the worker's.
    pub(in crate::tests) fn loses(&self, key: &Key) {
        self.state().lost.insert(key.clone());
    }

    /// A task is no longer the worker's as soon as any of its items are stored.
    pub(in crate::tests) fn lose_when_stored(&self, key: &Key) {
        self.state().lost_when_stored.insert(key.clone());
    }

    /// No settlement can be written from now on.
    pub(in crate::tests) fn refuse_settlement(&self) {
        self.state().refuses_settlement = true;
    }

    /// Refuses this many heartbeats.
    pub(in crate::tests) fn miss_beats(&self, number: u32) {
        self.state().missed_beats = number;
    }

    /// The sink refuses the next pages so often.
    pub(in crate::tests) fn sink_refuses(&self, times: u32) {
        self.state().sink_refusals = times;
    }

    /// The calls so far, each with the URL or host that it was for, and after how long, in order.
    pub(in crate::tests) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Waits until so many calls of this name were made.
    pub(in crate::tests) async fn until(&self, name: &str, count: usize) {
        while self.calls().iter().filter(|call| call.starts_with(name)).count() < count {
            sleep(Duration::from_millis(1)).await;
        }
    }

    pub(in crate::tests) fn called(&self, name: &str, of: impl std::fmt::Display) {
        self.state().calls.push(format!("{name} {of}"));
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}
