//! What this worker remembers of robots.txt files.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::Instant;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::politeness::robots::{REMEMBERED_FOR, Robots, RobotsKey, RobotsName};
use trawl_common::ports::RobotsFile;
use trawl_common::settings::{Politeness, Retry};
use trawl_common::web::url::{CanonicalUrl, Origin};
use trawl_web::RobotsWay;

/// All files in memory may take so many bytes.
const MEMORY: u64 = 64 << 20;

/// All ways to files that were given up for a while may take so many.
const WAYS_MEMORY: u64 = 8 << 20;

/// So long such a way is remembered: a slot may be as far ahead.
const WAY_KEPT_FOR: Duration = Duration::from_secs(3_600);

/// What is known of an origin.
#[derive(Clone)]
enum Known {
    Rules(Arc<Robots>),
    Unreadable(Failure),
}

/// What robots.txt means for one URL.
pub(crate) enum RobotsVerdict {
    /// It may be asked for, this long after another.
    Allowed(Option<Duration>),
    Forbidden,
    /// The file could not be read, so nothing may be asked for.
    Unreadable(Failure),
    /// To be found out: [`learn`](super::robots::learn).
    Unknown,
}

/// The rules of files that were read, and the ways to those that were not.
pub(crate) struct RobotsMemory {
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

impl Default for RobotsMemory {
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

impl RobotsMemory {
    /// What is known of `url`, for a spider that asks by `politeness` and is called `name`.
    pub(crate) fn verdict(
        &self,
        url: &CanonicalUrl,
        politeness: &Politeness,
        name: &RobotsName,
    ) -> RobotsVerdict {
        let key = (politeness.robots_key(&url.origin()), name.clone());
        let remembered = self.known.get(&key).filter(|remembered| remembered.until > Instant::now());
        match remembered.map(|remembered| remembered.known) {
            Some(Known::Rules(rules)) if rules.allows(url) => RobotsVerdict::Allowed(rules.crawl_delay()),
            Some(Known::Rules(_)) => RobotsVerdict::Forbidden,
            Some(Known::Unreadable(failure)) => RobotsVerdict::Unreadable(failure),
            None => RobotsVerdict::Unknown,
        }
    }

    /// The way to an origin's file, as far as this worker got before.
    pub(crate) fn way(&self, origin: &Origin) -> RobotsWay {
        self.ways.remove(origin).unwrap_or_else(|| RobotsWay::to(origin))
    }

    /// Remembers how far it got on the way to a file, for whoever goes on.
    pub(crate) fn keep_way(&self, origin: Origin, way: RobotsWay) {
        self.ways.insert(origin, way);
    }

    /// Remembers a file, for a while.
    pub(crate) fn remember(&self, retry: &Retry, key: RobotsKey, name: &RobotsName, file: &RobotsFile) {
        let known = read(file, name);
        let time = if let Known::Rules(_) = known { REMEMBERED_FOR } else { retry.robots_again() };
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
