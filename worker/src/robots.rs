//! robots.txt (RFC 9309): what it says, from this worker's memory, from the fleet's store, or from the origin.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::sync::Cache;
use tokio::time::{Instant, sleep};
use tracing::debug;
use trawl_common::gcra::{HORIZON, Slot, Wish};
use trawl_common::outcome::{Class, Failure};
use trawl_common::ports::{Ask, RobotsEntry, RobotsFile};
use trawl_common::robots::{MAX_BYTES, Robots};
use trawl_common::time::UnixMs;
use trawl_common::url::{CanonicalUrl, Origin};
use trawl_common::waiting::{FIRST_LOOK, NEAR};

use crate::Shared;
use crate::refusal;
use crate::spiders::Loaded;
use crate::ticket::{self, Ticket};

/// A file is used for no longer than a day (RFC 9309 2.4): so long in the store, and then in a worker's memory.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600 - REMEMBERED_FOR.as_secs());
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// How long it is kept that a file cannot be read, in the store and once more in a worker's memory: together less than a
/// URL waits for its next attempt, so that each attempt has a new answer.
fn unreadable_for(shared: &Shared) -> Duration {
    (shared.settings.retry.backoff / 5).max(Duration::from_millis(50))
}

/// How many redirects are followed (RFC 9309 2.3.1.2).
const REDIRECTS: usize = 5;

/// All files in memory may take so many bytes.
const MEMORY: u64 = 64 << 20;

/// How often to look whether another worker has fetched a file.
const LOOK: Duration = Duration::from_millis(200);

/// What is known of an origin.
#[derive(Clone)]
enum Known {
    Rules(Arc<Robots>),
    Unreadable(Failure),
}

/// What robots.txt means for one URL.
pub(crate) enum Verdict {
    /// It may be asked for, this long after another.
    Allowed(Option<Duration>),
    Forbidden,
    /// The file could not be read, so nothing may be asked for.
    Unreadable(Failure),
    /// To be found out: [`learn`].
    Unknown,
}

/// What came of finding out.
pub(crate) enum Learnt {
    /// The book knows.
    Known,
    /// The host is not to be asked before.
    Later(UnixMs),
    /// The host answered that it wants to be left alone until then.
    Refused(Failure, UnixMs),
    /// A person forbade to ask the host.
    Blocked,
    /// Reading the file made the worker panic.
    Panicked,
}

/// What this worker remembers of origins, for each name by which spiders are called there.
pub(crate) struct RobotsBook(Cache<(Origin, Arc<str>), Remembered>);

#[derive(Clone)]
struct Remembered {
    known: Known,
    until: Instant,
    bytes: usize,
}

impl Default for RobotsBook {
    fn default() -> Self {
        let weigh = |(origin, agent): &(Origin, Arc<str>), remembered: &Remembered| {
            let names = origin.as_str().len() + agent.len();
            u32::try_from(names + remembered.bytes + 200).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().max_capacity(MEMORY).weigher(weigh).build())
    }
}

impl RobotsBook {
    /// What is known of `url`, for `agent`.
    pub(crate) fn verdict(&self, url: &CanonicalUrl, agent: &Arc<str>) -> Verdict {
        let key = (url.origin(), Arc::clone(agent));
        let remembered = self.0.get(&key).filter(|remembered| remembered.until > Instant::now());
        match remembered.map(|remembered| remembered.known) {
            Some(Known::Rules(rules)) if rules.allows(url) => Verdict::Allowed(rules.crawl_delay()),
            Some(Known::Rules(_)) => Verdict::Forbidden,
            Some(Known::Unreadable(failure)) => Verdict::Unreadable(failure),
            None => Verdict::Unknown,
        }
    }

    fn remember(&self, shared: &Shared, origin: Origin, agent: &Arc<str>, file: &RobotsFile) {
        let known = read(file, agent);
        let time = if let Known::Rules(_) = known { REMEMBERED_FOR } else { unreadable_for(shared) };
        let remembered = Remembered { known, until: Instant::now() + time, bytes: file.body.len() };
        self.0.insert((origin, Arc::clone(agent)), remembered);
    }
}

/// What an answer means (RFC 9309 2.3.1): a file that is not there forbids nothing, one that cannot be read everything.
fn read(file: &RobotsFile, agent: &str) -> Known {
    match file.status {
        200..300 => Known::Rules(Arc::new(Robots::parse(&file.body, agent))),
        300..500 => Known::Rules(Arc::new(Robots::allow_all())),
        status => {
            let why = String::from_utf8_lossy(&file.body);
            let failure = Failure::new(Class::Robots, format_args!("robots.txt: {why}"));
            Known::Unreadable(Failure { status: (status > 0).then_some(status), ..failure })
        }
    }
}

/// Finds out what an origin's robots.txt says: of all workers one fetches it, and the others wait for that.
pub(crate) async fn learn(shared: &Shared, spider: &Loaded, origin: &Origin) -> Learnt {
    let Shared { ports, health, settings, .. } = shared;
    let lease = settings.fetch.timeout + HORIZON + NEAR;
    loop {
        let looking = || ports.hosts.robots(origin, lease);
        match health.until_done("looking for robots.txt", looking).await {
            RobotsEntry::Known(file) => {
                shared.robots.remember(shared, origin.clone(), &spider.agent, &file);
                return Learnt::Known;
            }
            RobotsEntry::Awaited => sleep(LOOK).await,
            RobotsEntry::Yours => break,
        }
    }
    match fetch(shared, spider, origin).await {
        Ok((file, ttl)) => {
            shared.robots.remember(shared, origin.clone(), &spider.agent, &file);
            let keeping = || ports.hosts.keep_robots(origin, &file, ttl);
            health.until_done("keeping robots.txt", keeping).await;
            Learnt::Known
        }
        Err(learnt) => {
            let giving_up = || ports.hosts.give_up_robots(origin);
            health.until_done("giving up robots.txt", giving_up).await;
            learnt
        }
    }
}

/// The file, and for how long it is good.
async fn fetch(shared: &Shared, spider: &Loaded, origin: &Origin) -> Result<(RobotsFile, Duration), Learnt> {
    let url = origin.robots_txt();
    let ticket = turn(shared, spider, &url).await?;
    let again = unreadable_for(shared);
    let answer = spider.fetcher.read_start(&url, MAX_BYTES, REDIRECTS).await;
    ticket
        .end(answer.as_ref().is_ok_and(|answer| answer.status < 500 && !refusal::is_refusal(answer.status)));
    match answer {
        Ok(answer) => {
            let failure = Failure::new(Class::Robots, format_args!("robots.txt: status {}", answer.status));
            let failure = Failure { status: Some(answer.status), retry_after: answer.retry_after, ..failure };
            if refusal::is_refusal(answer.status) {
                let until = refusal::push_back(shared, spider, &url, &failure).await;
                return Err(Learnt::Refused(failure, until));
            }
            let is_readable = answer.status < 500;
            let body =
                if is_readable { answer.body } else { Bytes::from(format!("status {}", answer.status)) };
            let ttl = if is_readable { KEPT_FOR } else { again };
            Ok((RobotsFile { status: answer.status, body }, ttl))
        }
        // What the pages meet as well, each with its own failure; too many redirects lead to no file.
        Err(failure) if matches!(failure.class, Class::Forbidden | Class::Redirect) => {
            Ok((RobotsFile { status: 404, body: Bytes::new() }, again))
        }
        Err(failure) => {
            debug!(%origin, %failure, "no robots.txt");
            Ok((RobotsFile { status: 0, body: Bytes::from(failure.to_string()) }, again))
        }
    }
}

/// Waits for its turn with the host, unless that is beyond the horizon.
async fn turn(shared: &Shared, spider: &Loaded, url: &CanonicalUrl) -> Result<Ticket, Learnt> {
    let manners = spider.politeness.manners(&url.host());
    let mut held = None;
    loop {
        let wish = Wish {
            pace: manners.pace,
            held,
            turn: None,
            deadline: None,
            token: rand::random(),
            lapse: ticket::lapse(shared),
        };
        let ask = [Ask { key: manners.key.clone(), wish }];
        let reserving = || shared.ports.hosts.reserve(&ask);
        let slot = shared.health.until_done("reserving slots", reserving).await.pop();
        match slot {
            Some(Slot::Reserved { wait, at }) => {
                held = Some(at);
                sleep(wait).await;
            }
            Some(Slot::Later { wait, .. }) => {
                return Err(Learnt::Later(UnixMs::now().plus(wait.min(FIRST_LOOK))));
            }
            Some(Slot::Blocked) => return Err(Learnt::Blocked),
            Some(Slot::Now | Slot::TooLate) | None => {
                let [Ask { key, wish }] = ask;
                return Ok(Ticket::new(shared, key, &wish, 0));
            }
        }
    }
}
