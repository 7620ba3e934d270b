//! robots.txt (RFC 9309): what it says, from this worker's memory, from the fleet's store, or from the origin.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::politeness::gcra::HORIZON;
use trawl_common::politeness::robots::{KEPT_FOR, REMEMBERED_FOR, Robots, RobotsKey, RobotsName};
use trawl_common::politeness::waiting::NEAR;
use trawl_common::ports::{Error, ErrorKind, Result, RobotsEntry, RobotsFile};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::{CanonicalUrl, Origin};
use trawl_web::{NoRobots, RobotsWay};

use super::standstill::Why;
use crate::Shared;
use crate::fetch::{apart, proxy};
use crate::spiders::Loaded;

/// All files in memory may take so many bytes.
const MEMORY: u64 = 64 << 20;

/// All ways to files that were given up for a while may take so many.
const WAYS_MEMORY: u64 = 8 << 20;

/// So long such a way is remembered: a turn in line may be as far ahead.
const WAY_KEPT_FOR: Duration = Duration::from_secs(3_600);

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
    /// A host on the way is not to be asked before.
    Later(UnixMs),
    /// A host on the way answered that it wants to be left alone until then.
    Refused(Failure, UnixMs),
    /// A person forbade to ask a host on the way.
    Blocked,
    /// Whoever keeps the files or the schedules failed for good.
    Failed(Error),
    /// Reading the file made the worker panic.
    Panicked,
}

/// What this worker remembers of robots.txt files.
pub(crate) struct RobotsBook {
    /// For each name by which spiders are called there.
    known: Cache<(RobotsKey, RobotsName), Remembered>,
    /// How far it got to files that it had to give up for a while: nothing on the way is asked for twice.
    ways: Cache<Origin, RobotsWay>,
}

#[derive(Clone)]
struct Remembered {
    known: Known,
    until: Instant,
    bytes: usize,
}

impl Default for RobotsBook {
    fn default() -> Self {
        let weigh = |(key, name): &(RobotsKey, RobotsName), remembered: &Remembered| {
            let names = key.as_str().len() + name.as_str().len();
            u32::try_from(names + remembered.bytes + 200).unwrap_or(u32::MAX)
        };
        let weigh_way = |origin: &Origin, way: &RobotsWay| {
            u32::try_from(origin.as_str().len() + way.bytes() + 200).unwrap_or(u32::MAX)
        };
        let ways = Cache::builder().max_capacity(WAYS_MEMORY).weigher(weigh_way).time_to_live(WAY_KEPT_FOR);
        Self { known: Cache::builder().max_capacity(MEMORY).weigher(weigh).build(), ways: ways.build() }
    }
}

impl RobotsBook {
    /// What is known of `url`, for a spider.
    pub(crate) fn verdict(&self, url: &CanonicalUrl, spider: &Loaded) -> Verdict {
        let key = (spider.politeness.robots_key(&url.origin()), spider.robots_name.clone());
        let remembered = self.known.get(&key).filter(|remembered| remembered.until > Instant::now());
        match remembered.map(|remembered| remembered.known) {
            Some(Known::Rules(rules)) if rules.allows(url) => Verdict::Allowed(rules.crawl_delay()),
            Some(Known::Rules(_)) => Verdict::Forbidden,
            Some(Known::Unreadable(failure)) => Verdict::Unreadable(failure),
            None => Verdict::Unknown,
        }
    }

    /// The way to an origin's file, as far as this worker got before.
    fn way(&self, origin: &Origin) -> RobotsWay {
        self.ways.remove(origin).unwrap_or_else(|| RobotsWay::to(origin))
    }

    fn remember(&self, shared: &Shared, key: RobotsKey, name: &RobotsName, file: &RobotsFile) {
        let known = read(file, name);
        let time =
            if let Known::Rules(_) = known { REMEMBERED_FOR } else { shared.settings.retry.robots_again() };
        let bytes = if let Known::Rules(rules) = &known { rules.bytes() } else { 0 };
        let remembered = Remembered { known, until: Instant::now() + time, bytes };
        self.known.insert((key, name.clone()), remembered);
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

/// Finds out what an origin's robots.txt says: of all workers one fetches it, and the others wait for that. Where redirects
/// take longer than the lease another begins as well, in its turn.
pub(super) async fn learn(shared: &Shared, spider: &Loaded, origin: &Origin) -> Learnt {
    find_out(shared, spider, origin).await.unwrap_or_else(Learnt::Failed)
}

async fn find_out(shared: &Shared, spider: &Loaded, origin: &Origin) -> Result<Learnt> {
    let Shared { ports, health, settings, .. } = shared;
    let lease = settings.fetch.timeout + HORIZON + NEAR;
    let key = spider.politeness.robots_key(origin);
    loop {
        let looking = || ports.hosts.robots(&key, lease);
        match health.patiently("looking for robots.txt", looking).await {
            Ok(RobotsEntry::Known(file)) => {
                shared.robots.remember(shared, key, &spider.robots_name, &file);
                return Ok(Learnt::Known);
            }
            Ok(RobotsEntry::Awaited) => sleep(LOOK).await,
            Ok(RobotsEntry::Yours) => break,
            Err(error) if error.kind == ErrorKind::Corrupt => {
                warn!(%origin, %error, "what is kept as its robots.txt is none; asking for it anew");
                break;
            }
            Err(error) => return Err(error),
        }
    }
    match fetch(shared, spider, origin).await {
        Ok((file, ttl)) => {
            shared.robots.remember(shared, key.clone(), &spider.robots_name, &file);
            let keeping = || ports.hosts.keep_robots(&key, &file, ttl);
            health.patiently("keeping robots.txt", keeping).await?;
            Ok(Learnt::Known)
        }
        Err(learnt) => {
            let giving_up = || ports.hosts.give_up_robots(&key);
            health.patiently("giving up robots.txt", giving_up).await?;
            Ok(learnt)
        }
    }
}

/// The file, and for how long it is good.
async fn fetch(
    shared: &Shared,
    spider: &Loaded,
    origin: &Origin,
) -> std::result::Result<(RobotsFile, Duration), Learnt> {
    let mut way = shared.robots.way(origin);
    let asking = shared.standstill.asks_robots(origin);
    let domain = HostKey::domain(&origin.robots_txt().host());
    let answer = apart::ask(shared, spider, domain, async |fetcher| {
        fetcher.robots(&shared.schedules, &spider.politeness, &mut way).await
    });
    let answer = answer.await.unwrap_or_else(|until| Err(NoRobots::Later(until)));
    drop(asking);
    if let Ok(_) | Err(NoRobots::Refused(..)) = &answer {
        proxy::proxy_works(shared, spider);
    }
    let learnt = match answer {
        Ok(trawl_web::Robots { file, is_lasting }) => {
            debug!(%origin, status = file.status, "robots.txt");
            let ttl = if is_lasting { KEPT_FOR } else { shared.settings.retry.robots_again() };
            return Ok((file, ttl));
        }
        Err(NoRobots::Blocked) => Learnt::Blocked,
        Err(NoRobots::Failed(error)) => Learnt::Failed(error),
        Err(NoRobots::Later(until)) => Learnt::Later(until),
        Err(NoRobots::NoProxy(failure)) => Learnt::Later(proxy::proxy_fails(shared, spider, &failure)),
        Err(NoRobots::Refused(host, failure, until)) => {
            shared.standstill.waits(&host, until, Why::Refused(failure.status.unwrap_or_default()));
            Learnt::Refused(failure, until)
        }
    };
    shared.robots.ways.insert(origin.clone(), way);
    Err(learnt)
}
