//! This worker's memory of robots.txt files.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::Instant;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::politeness::robots::{MEMORY_TTL, Robots, RobotsFile, RobotsKey, RobotsName};
use trawl_common::settings::{Politeness, Retry};
use trawl_common::web::url::{CanonicalUrl, Origin};
use trawl_web::RobotsWay;

/// Maximum total size of the files in memory, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum total size of the suspended fetches, in bytes.
const MAX_WAYS_BYTES: u64 = 8 << 20;

/// The time for which a suspended fetch is kept: a slot may be this far ahead.
const WAY_TTL: Duration = Duration::from_secs(3_600);

/// The known rules of an origin.
#[derive(Clone)]
enum Known {
    Rules(Arc<Robots>),
    Unreadable(Failure),
}

/// The reason why a URL may not be requested.
pub(crate) enum NotAllowed {
    /// Its robots.txt forbids it.
    Forbidden,
    /// The file could not be read, so nothing may be requested.
    Unreadable(Failure),
    /// The file is not known yet: [`learn`](super::robots::learn) fetches it.
    Unknown,
}

/// The rules of files that were read, and the suspended fetches of others.
pub(crate) struct RobotsMemory {
    /// The rules for each name by which spiders are addressed.
    known: Cache<(RobotsKey, RobotsName), Remembered>,
    /// The progress of fetches that had to be suspended, so that none of their requests is repeated.
    ways: Cache<Origin, RobotsWay>,
}

#[derive(Clone)]
struct Remembered {
    known: Known,
    until: Instant,
    bytes: usize,
}

impl Default for RobotsMemory {
    fn default() -> Self {
        let weigh = |(key, name): &(RobotsKey, RobotsName), remembered: &Remembered| {
            let names = key.as_str().len() + name.as_str().len();
            u32::try_from(names + remembered.bytes + 200).unwrap_or(u32::MAX)
        };
        let weigh_way = |origin: &Origin, way: &RobotsWay| {
            u32::try_from(origin.as_str().len() + way.bytes() + 200).unwrap_or(u32::MAX)
        };
        let ways = Cache::builder().max_capacity(MAX_WAYS_BYTES).weigher(weigh_way).time_to_live(WAY_TTL);
        Self { known: Cache::builder().max_capacity(MAX_BYTES).weigher(weigh).build(), ways: ways.build() }
    }
}

impl RobotsMemory {
    /// Returns the time between two requests that the robots.txt of `url` asks of a spider with this `politeness` and
    /// this `name`, if it allows the URL.
    pub(super) fn crawl_delay(
        &self,
        url: &CanonicalUrl,
        politeness: &Politeness,
        name: &RobotsName,
    ) -> Result<Duration, NotAllowed> {
        let key = (politeness.robots_key(&url.origin()), name.clone());
        let remembered = self.known.get(&key).filter(|remembered| remembered.until > Instant::now());
        match remembered.map(|remembered| remembered.known) {
            Some(Known::Rules(rules)) if rules.allows(url) => Ok(rules.crawl_delay().unwrap_or_default()),
            Some(Known::Rules(_)) => Err(NotAllowed::Forbidden),
            Some(Known::Unreadable(failure)) => Err(NotAllowed::Unreadable(failure)),
            None => Err(NotAllowed::Unknown),
        }
    }

    /// Takes the fetch of an origin's file, with the progress that this worker made before.
    pub(crate) fn way(&self, origin: &Origin) -> RobotsWay {
        self.ways.remove(origin).unwrap_or_else(|| RobotsWay::to(origin))
    }

    /// Stores the progress of a suspended fetch.
    pub(crate) fn keep_way(&self, origin: Origin, way: RobotsWay) {
        self.ways.insert(origin, way);
    }

    /// Remembers a file for a while.
    pub(crate) fn remember(&self, retry: &Retry, key: RobotsKey, name: &RobotsName, file: &RobotsFile) {
        let known = read(file, name);
        let time = if let Known::Rules(_) = known { MEMORY_TTL } else { retry.robots_again() };
        let bytes = if let Known::Rules(rules) = &known { rules.bytes() } else { 0 };
        let remembered = Remembered { known, until: Instant::now() + time, bytes };
        self.known.insert((key, name.clone()), remembered);
    }
}

/// Returns the rules in a response.
fn read(file: &RobotsFile, name: &RobotsName) -> Known {
    match Robots::new(file, name) {
        Some(rules) => Known::Rules(Arc::new(rules)),
        None if file.status == 0 => Known::Unreadable(unanswered(file)),
        None => {
            let why = String::from_utf8_lossy(&file.body);
            let failure = Failure::new(Class::Robots, format_args!("robots.txt: {why}"));
            Known::Unreadable(Failure { status: Some(file.status), ..failure })
        }
    }
}

/// Returns the reason why there was no response. An unreachable host fails with that failure itself: its
/// robots.txt was only the first to meet it.
fn unanswered(file: &RobotsFile) -> Failure {
    let detail = String::from_utf8_lossy(&file.body);
    match file.failure {
        Some(class @ (Class::Dns | Class::Connect | Class::Tls | Class::Timeout)) => {
            Failure::new(class, format_args!("robots.txt: {detail}"))
        }
        Some(class) => Failure::new(Class::Robots, format_args!("robots.txt: {class}: {detail}")),
        None => Failure::new(Class::Robots, format_args!("robots.txt: {detail}")),
    }
}
