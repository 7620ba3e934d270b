//! robots.txt (RFC 9309): what it says, from this worker's memory, from the fleet's store, or from the origin.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::{Instant, sleep};
use tracing::debug;
use trawl_common::gcra::{HORIZON, Slot, Wish};
use trawl_common::outcome::{Class, Failure};
use trawl_common::ports::{Ask, RobotsEntry, RobotsFile};
use trawl_common::robots::{KEPT_FOR, REMEMBERED_FOR, Robots, RobotsName};
use trawl_common::time::UnixMs;
use trawl_common::url::{CanonicalUrl, Origin};
use trawl_common::waiting::{FIRST_LOOK, NEAR};

use crate::Shared;
use crate::outage::proxy_is_away;
use crate::refusal;
use crate::spiders::Loaded;
use crate::ticket::{self, Ticket};

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
pub(crate) struct RobotsBook(Cache<(Origin, RobotsName), Remembered>);

#[derive(Clone)]
struct Remembered {
    known: Known,
    until: Instant,
    bytes: usize,
}

impl Default for RobotsBook {
    fn default() -> Self {
        let weigh = |(origin, name): &(Origin, RobotsName), remembered: &Remembered| {
            let names = origin.as_str().len() + name.as_str().len();
            u32::try_from(names + remembered.bytes + 200).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().max_capacity(MEMORY).weigher(weigh).build())
    }
}

impl RobotsBook {
    /// What is known of `url`, for the crawler of this name.
    pub(crate) fn verdict(&self, url: &CanonicalUrl, name: &RobotsName) -> Verdict {
        let key = (url.origin(), name.clone());
        let remembered = self.0.get(&key).filter(|remembered| remembered.until > Instant::now());
        match remembered.map(|remembered| remembered.known) {
            Some(Known::Rules(rules)) if rules.allows(url) => Verdict::Allowed(rules.crawl_delay()),
            Some(Known::Rules(_)) => Verdict::Forbidden,
            Some(Known::Unreadable(failure)) => Verdict::Unreadable(failure),
            None => Verdict::Unknown,
        }
    }

    fn remember(&self, shared: &Shared, origin: Origin, name: &RobotsName, file: &RobotsFile) {
        let known = read(file, name);
        let time =
            if let Known::Rules(_) = known { REMEMBERED_FOR } else { shared.settings.retry.robots_again() };
        let bytes = if let Known::Rules(rules) = &known { rules.bytes() } else { 0 };
        let remembered = Remembered { known, until: Instant::now() + time, bytes };
        self.0.insert((origin, name.clone()), remembered);
    }
}

/// What an answer means.
fn read(file: &RobotsFile, name: &RobotsName) -> Known {
    match Robots::of(file, name) {
        Some(rules) => Known::Rules(Arc::new(rules)),
        None if file.status == 0 => Known::Unreadable(unanswered(&String::from_utf8_lossy(&file.body))),
        None => {
            let why = String::from_utf8_lossy(&file.body);
            let failure = Failure::new(Class::Robots, format_args!("robots.txt: {why}"));
            Known::Unreadable(Failure { status: Some(file.status), ..failure })
        }
    }
}

/// Why there was no answer. A host that cannot be reached fails as such: its robots.txt only met that first.
fn unanswered(why: &str) -> Failure {
    match Failure::from_text(why) {
        Some(Failure {
            class: class @ (Class::Dns | Class::Connect | Class::Tls | Class::Timeout),
            detail,
            ..
        }) => Failure::new(class, format_args!("robots.txt: {detail}")),
        _ => Failure::new(Class::Robots, format_args!("robots.txt: {why}")),
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
                shared.robots.remember(shared, origin.clone(), &spider.robots_name, &file);
                return Learnt::Known;
            }
            RobotsEntry::Awaited => sleep(LOOK).await,
            RobotsEntry::Yours => break,
        }
    }
    match fetch(shared, spider, origin).await {
        Ok((file, ttl)) => {
            shared.robots.remember(shared, origin.clone(), &spider.robots_name, &file);
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
    let asking = shared.standstill.asks_robots(origin);
    let answer = spider.fetcher.robots(origin).await;
    drop(asking);
    let _held = ticket.end(answer.as_ref().is_ok_and(|answer| answer.is_lasting));
    if let Some(until) = proxy_is_away(shared, spider, &answer) {
        return Err(Learnt::Later(until));
    }
    match answer {
        Ok(trawl_web::Robots { file, is_lasting }) => {
            debug!(%origin, status = file.status, "robots.txt");
            let ttl = if is_lasting { KEPT_FOR } else { shared.settings.retry.robots_again() };
            Ok((file, ttl))
        }
        Err(failure) => {
            let until = refusal::push_back(shared, spider, &url, &failure).await;
            Err(Learnt::Refused(failure, until))
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
