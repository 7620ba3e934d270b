//! Requests outside a crawl's own schedule, for trials and for programs: allowed by robots.txt, each in a
//! slot of its host.

use std::sync::Arc;

use tokio::time::{Instant, sleep};
use trawl_common::frontier::outcome::Failure;
use trawl_common::health::Health;
use trawl_common::host_schedules::{Decision, HostPermit, HostRequest, HostSchedules};
use trawl_common::names::CrawlRef;
use trawl_common::politeness::gcra::Standing;
use trawl_common::politeness::robots::RobotsName;
use trawl_common::politeness::waiting::{NEAR, SOON};
use trawl_common::ports::{Error, Hosts};
use trawl_common::settings::{HostPolicy, Politeness, Settings};
use trawl_common::spider::Spider;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::{CanonicalUrl, Host, Origin};
use trawl_web::{Fetcher, NoRobots, RobotsWay, shared_robots};

use super::exchange::{Rank, SlotExchange};
use super::robots_memory::{NotAllowed, RobotsMemory};
use crate::telemetry::host_log::HostLog;

/// Sends requests by the schedules that all share.
#[derive(Clone)]
pub(crate) struct PoliteClient {
    pub(crate) settings: Arc<Settings>,
    pub(crate) schedules: HostSchedules,
    pub(crate) robots: Arc<RobotsMemory>,
    /// The exchange through which this process's URLs hand over their slots.
    pub(crate) exchange: Arc<SlotExchange>,
    /// The log of back-offs, if this process writes the fleet's log.
    pub(crate) host_log: Option<Arc<HostLog>>,
}

/// The identity and rules with which hosts are asked.
pub(crate) struct AsSpider {
    pub(crate) fetcher: Fetcher,
    pub(crate) politeness: Politeness,
    pub(crate) robots_name: RobotsName,
}

impl AsSpider {
    /// Returns the identity of `spider`, whose requests `fetcher` makes.
    pub(crate) fn new(spider: &Spider, settings: &Settings, fetcher: Fetcher) -> Self {
        Self {
            fetcher,
            politeness: spider.politeness.apply(&settings.politeness),
            robots_name: spider.request.apply(&settings.fetch).robots_name().unwrap_or_default(),
        }
    }
}

/// The reason why a host is not asked.
pub(crate) enum NotAsked {
    /// An operator blocked it.
    Blocked(HostKey),
    /// Its robots.txt forbids it, for this reason.
    Forbidden(String),
    /// Its robots.txt cannot be read, so nothing may be requested.
    Unreadable(Failure),
    /// Fetching its robots.txt failed.
    Failed(Failure),
    /// It must not be asked before this time.
    Later(HostKey, UnixMs),
    /// The store of the schedules failed.
    Port(Error),
}

impl PoliteClient {
    /// Returns an instance for a process that does not crawl, with the schedules in `hosts`.
    pub(crate) fn alone(settings: Arc<Settings>, hosts: Arc<dyn Hosts>) -> Self {
        // No request takes longer.
        let lapse = settings.fetch.timeout + NEAR;
        let schedules = HostSchedules::new(hosts, Arc::new(Health::fail_fast()), lapse, &settings);
        let (robots, exchange, host_log) = Default::default();
        Self { settings, schedules, robots, exchange, host_log }
    }

    /// Returns the policy of the host of `url`, if its robots.txt allows the request. `None` if its
    /// robots.txt has to be fetched first, with [`PoliteClient::learn`].
    pub(crate) fn policy(
        &self,
        spider: &AsSpider,
        url: &CanonicalUrl,
    ) -> Option<Result<HostPolicy, NotAsked>> {
        Some(match self.host_policy(&spider.politeness, &spider.robots_name, url) {
            Ok(policy) => Ok(policy),
            Err(NotAllowed::Unknown) => return None,
            Err(NotAllowed::Forbidden) => {
                let why = format!("{url}: robots.txt forbids it to {}", spider.robots_name);
                Err(NotAsked::Forbidden(why))
            }
            Err(NotAllowed::Unreadable(failure)) => Err(NotAsked::Unreadable(failure)),
        })
    }

    /// Returns the policy of the host of `url`, slowed down as its robots.txt asks, if that allows the request.
    pub(crate) fn host_policy(
        &self,
        politeness: &Politeness,
        name: &RobotsName,
        url: &CanonicalUrl,
    ) -> Result<HostPolicy, NotAllowed> {
        let policy = politeness.host_policy(&url.host());
        if !policy.robots {
            return Ok(policy);
        }
        let delay = self.robots.crawl_delay(url, politeness, name)?;
        let pace = policy.pace.slowed(delay.min(self.settings.politeness.max_crawl_delay));
        Ok(HostPolicy { pace, ..policy })
    }

    /// Gets an origin's robots.txt, from the fleet or from the origin. Must run to its end: others may wait
    /// for the file.
    pub(crate) async fn learn(&self, spider: &AsSpider, origin: &Origin) -> Result<(), NotAsked> {
        let AsSpider { fetcher, politeness, robots_name } = spider;
        let fetch = async |way: &mut RobotsWay| fetcher.robots(&self.schedules, politeness, way).await;
        let host = || politeness.host_policy(&origin.robots_txt().host()).key;
        self.learn_by(politeness, robots_name, origin, fetch).await.map_err(|error| match error {
            NoRobots::Later(until) => NotAsked::Later(host(), until),
            NoRobots::Blocked => NotAsked::Blocked(host()),
            NoRobots::Refused(_, failure, _) | NoRobots::Blameless(failure) => NotAsked::Failed(failure),
            NoRobots::Failed(error) => NotAsked::Port(error),
        })
    }

    /// Gets an origin's robots.txt from the fleet or, by `fetch`, from the origin, and remembers it. One process
    /// fetches it, and the others wait for that. If redirects take longer than the lease, another one starts as
    /// well.
    pub(super) async fn learn_by(
        &self,
        politeness: &Politeness,
        name: &RobotsName,
        origin: &Origin,
        fetch: impl AsyncFnOnce(&mut RobotsWay) -> Result<trawl_web::Robots, NoRobots>,
    ) -> Result<(), NoRobots> {
        let Self { settings, schedules, robots, .. } = self;
        let key = politeness.robots_key(origin);
        let fetching = async || {
            let mut way = robots.way(origin);
            let fetched = fetch(&mut way).await;
            if fetched.is_err() {
                robots.keep_way(origin.clone(), way);
            }
            fetched
        };
        let file = shared_robots(schedules, settings, &key, fetching).await?;
        robots.remember(&settings.retry, key, name, &file);
        Ok(())
    }

    /// Makes the fleet leave a host alone that answered with `failure` to a request of `crawl`, if it was of one.
    /// Returns the end of the back-off.
    pub(crate) async fn back_off(
        &self,
        host: &HostKey,
        politeness: &Politeness,
        failure: &Failure,
        crawl: Option<&CrawlRef>,
    ) -> Result<UnixMs, Error> {
        let until = self.schedules.push_back(host, politeness, failure, crawl).await?;
        if let Some(log) = &self.host_log {
            log.log_backoff(host, until, failure, crawl);
        }
        Ok(until)
    }

    /// Waits until `deadline` for a permit to send one request to `host`. It does not queue behind all that a
    /// crawl has for that host, nor behind all URLs with reserved slots: one of these may exchange its slot
    /// with it.
    pub(crate) async fn permit(
        &self,
        spider: &AsSpider,
        policy: &HostPolicy,
        host: &Host,
        deadline: Instant,
    ) -> Result<HostPermit, NotAsked> {
        let addresses = spider.fetcher.addresses(host).await;
        let mut request = HostRequest { standing: Standing::Aside, ..HostRequest::new(policy) };
        loop {
            let decision = self.schedules.ask(&mut request, &addresses, NEAR).await;
            let (wait, slot) = match decision.map_err(NotAsked::Port)? {
                Decision::Go(permit) => {
                    permit.wait_to_send().await;
                    return Ok(permit);
                }
                Decision::At { wait, slot } => (wait, Some(slot)),
                Decision::Later { wait, .. } | Decision::Crowded { wait } => (wait.max(SOON), None),
                Decision::Blocked => return Err(NotAsked::Blocked(policy.key.clone())),
                Decision::TooLate => unreachable!("it has no deadline"),
            };
            if Instant::now() + wait > deadline {
                return Err(NotAsked::Later(policy.key.clone(), UnixMs::now().plus(wait)));
            }
            match slot {
                Some(slot) => {
                    request.slot = Some(self.exchange.wait(&policy.key, Rank::OfProgram, slot, wait).await)
                }
                None => sleep(wait).await,
            }
        }
    }
}

/// Returns the message for a host that an operator blocked.
pub(crate) fn blocked(key: &HostKey) -> String {
    format!("{key} is blocked: `trawl hosts unblock {key}` lifts that")
}
