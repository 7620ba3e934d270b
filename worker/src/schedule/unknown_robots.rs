//! URLs that wait in a worker for a robots.txt.
//!
//! A page can name thousands of hosts, so these URLs take no space from those whose robots.txt is known, and no
//! domain leads to more files at once than it leaves to others.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use trawl_common::open_files;
use trawl_common::politeness::robots::RobotsKey;
use trawl_common::politeness::waiting::max_waiting;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Origin;

use super::Scheduling;
use super::robots::{self, Learnt};
use crate::claimed::ClaimedUrl;
use crate::schedule::domains::{LinePace, PutOff, SLOW_PAGE};

/// Maximum number of URLs that wait for one slow robots.txt: more would keep out those of other hosts.
const MAX_PER_FILE: usize = 16;

/// The time within which most files arrive; retrying by way of the broker takes a second. Within this time
/// any number of URLs waits for a file, and while there is no room for more, no URLs are scheduled.
const PROMPT_WAIT: Duration = Duration::from_millis(250);

/// URLs that wait for a robots.txt.
struct Waiting {
    /// The domain that led to it.
    domain: HostKey,
    /// The time since when it is being fetched.
    since: Instant,
    urls: Vec<ClaimedUrl>,
}

impl Waiting {
    /// Whether another URL may wait for it.
    fn has_space(&self) -> bool {
        let waited = self.since.elapsed();
        waited < PROMPT_WAIT || waited < SLOW_PAGE && self.urls.len() < MAX_PER_FILE
    }
}

/// The waiting URLs, by the file that they wait for.
pub(super) struct UnknownRobots {
    /// Maximum number of files that are fetched at once.
    max_files: usize,
    /// Maximum number of files that may still arrive soon, and approximate number of URLs that may wait.
    max_waiting: usize,
    waiting: HashMap<RobotsKey, Waiting>,
    /// The number of waiting URLs.
    urls: usize,
    put_off: PutOff,
    /// The fetches of the files.
    learning: JoinSet<(RobotsKey, Learnt)>,
}

impl UnknownRobots {
    /// Returns room for half as many URLs as may wait in a worker for anything else.
    pub(super) fn new(prefetch: u16) -> Self {
        let (waiting, urls, put_off, learning) = Default::default();
        let max_waiting = max_waiting(prefetch).div_ceil(2);
        Self { max_files: prefetch.into(), max_waiting, waiting, urls, put_off, learning }
    }

    /// The time until which nothing is claimed: there is no room, and a file that URLs wait for may still arrive
    /// quickly.
    pub(super) fn crowded_until(&self) -> Option<Instant> {
        let oldest = self.waiting.values().map(|waiting| waiting.since).min()?;
        Some(oldest + PROMPT_WAIT).filter(|&until| !self.has_space() && until > Instant::now())
    }

    /// The time at which the next of the awaited files counts as slow.
    pub(super) fn some_slow_at(&self) -> Option<Instant> {
        let awaited = self.waiting.values().filter(|waiting| !waiting.urls.is_empty());
        awaited.map(|waiting| waiting.since + SLOW_PAGE).min()
    }

    /// Takes the URLs that wait for slow files.
    pub(super) fn take_slow(&mut self) -> Vec<ClaimedUrl> {
        let slow = self.waiting.values_mut().filter(|waiting| waiting.since.elapsed() >= SLOW_PAGE);
        let urls: Vec<ClaimedUrl> = slow.flat_map(|waiting| waiting.urls.drain(..)).collect();
        self.urls -= urls.len();
        urls
    }

    /// Takes all waiting URLs.
    pub(super) fn take_all(&mut self) -> Vec<ClaimedUrl> {
        self.urls = 0;
        self.waiting.drain().flat_map(|(_, waiting)| waiting.urls).collect()
    }

    /// Makes a URL wait for the robots.txt of `origin`, with a limited number per file. If there is no room,
    /// returns the URL with the delay after which it is to be tried again: by then there should be. If the file
    /// is slow, that is as long as the others have waited so far, so that a slow file causes few retries.
    pub(super) fn add(
        &mut self,
        scheduling: &Arc<Scheduling>,
        origin: Origin,
        mut claimed: ClaimedUrl,
    ) -> Option<(ClaimedUrl, Duration)> {
        // URLs taken together with those that took the last room wait with them.
        let has_space = self.has_space() || self.crowded_until().is_some();
        let key = claimed.spider.politeness.robots_key(&origin);
        if let Some(waiting) = self.waiting.get_mut(&key) {
            if !has_space || !waiting.has_space() {
                return Some((claimed, waiting.since.elapsed()));
            }
            self.urls += 1;
            waiting.urls.push(claimed);
            return None;
        }
        let domain = claimed.led_by();
        let now = Instant::now();
        let soon = self.files(|waiting| now - waiting.since < SLOW_PAGE, &domain);
        let may_ask = soon.leaves_space(self.max_waiting)
            && self.files(|_| true, &domain).leaves_space(self.max_files)
            && open_files::has_room();
        if !has_space || !may_ask {
            let since = claimed.message.since;
            let interval = scheduling.lateness.interval();
            let pace = LinePace { takes: None, of: soon.of_domain, places: self.max_waiting, interval };
            let away = self.put_off.put_off(&domain, since, pace);
            claimed.message.since = Some(away.since);
            return Some((claimed, away.wait));
        }
        let (scheduling, spider) = (Arc::clone(scheduling), Arc::clone(&claimed.spider));
        self.urls += 1;
        self.waiting.insert(key.clone(), Waiting { domain, since: Instant::now(), urls: vec![claimed] });
        self.learning.spawn(async move {
            let learning = AssertUnwindSafe(robots::learn(&scheduling, &spider, &origin)).catch_unwind();
            (key, learning.await.unwrap_or(Learnt::Panicked))
        });
        None
    }

    /// Waits until the fetch of a file has ended. Returns the URLs that waited for it. Never returns while no
    /// file is being fetched.
    pub(super) async fn next(&mut self) -> (Vec<ClaimedUrl>, Learnt) {
        // A panic of the fetch is caught within it.
        let Some(Ok((key, learnt))) = self.learning.join_next().await else {
            return std::future::pending().await;
        };
        let Some(Waiting { since, urls, .. }) = self.waiting.remove(&key) else {
            return (Vec::new(), learnt);
        };
        self.put_off.note_free(since.elapsed().min(SLOW_PAGE));
        self.urls -= urls.len();
        (urls, learnt)
    }

    /// Whether another URL may wait.
    fn has_space(&self) -> bool {
        self.urls < self.max_waiting
    }

    /// Counts the files of this kind that are being fetched.
    fn files(&self, is_of_kind: impl Fn(&Waiting) -> bool, domain: &HostKey) -> Files {
        let (mut all, mut of_domain) = (0, 0);
        for waiting in self.waiting.values().filter(|waiting| is_of_kind(waiting)) {
            all += 1;
            of_domain += usize::from(waiting.domain == *domain);
        }
        Files { all, of_domain }
    }
}

/// Numbers of files.
struct Files {
    all: usize,
    of_domain: usize,
}

impl Files {
    /// Whether the domain has fewer of `max` files than it leaves to others.
    fn leaves_space(&self, max: usize) -> bool {
        self.of_domain < max.saturating_sub(self.all)
    }
}
