//! Permission to send one request to a host. Workers and producers ask for it here, for pages, redirects,
//! `robots.txt` and sources alike; nothing else reads a [`Slot`].

mod permit;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::info;

pub use permit::{HostPermit, InFlight};

use crate::frontier::outcome::Failure;
use crate::health::Health;
use crate::names::CrawlRef;
use crate::politeness::addresses::AddressRate;
use crate::politeness::ceiling::Ceiling;
use crate::politeness::gcra::{BackoffTerms, Pace, Slot, SlotRequest, Standing};
use crate::politeness::waiting::{NEAR, waitlisted};
use crate::ports::{BackoffRequest, Error, HostSlotRequest, Hosts, Result, one_each};
use crate::settings::{HostPolicy, Politeness, Settings};
use crate::time::UnixMs;
use crate::web::host::HostKey;

/// A process's access to the schedules of hosts.
#[derive(Clone)]
pub struct HostSchedules {
    /// The store of the schedules.
    pub hosts: Arc<dyn Hosts>,
    /// The destination of reports about outages.
    pub health: Arc<Health>,
    /// The requests of this process in flight.
    pub in_flight: Arc<InFlight>,
    /// Time after which a request that nobody ends or extends no longer counts as in flight.
    pub lapse: Duration,
    /// The rate of all requests of this process together.
    pub ceiling: Arc<Ceiling>,
    /// The rates of addresses that many hosts share.
    pub addresses: Arc<AddressRate>,
}

/// A request that waits for its permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// The key of the host's schedule.
    pub key: HostKey,
    /// The pace of that host.
    pub pace: Pace,
    /// The slot that an earlier [`Decision::At`] reserved.
    pub slot: Option<UnixMs>,
    /// Whether it joins the host's waitlist if its slot is too far ahead to be reserved.
    pub standing: Standing,
    /// The time from which it is no longer worth sending.
    pub deadline: Option<UnixMs>,
    /// Whether it waits for its host only: it has waited at the host's addresses until its slot had passed.
    pub waits_for_host_only: bool,
}

impl HostRequest {
    /// Creates a request under this policy, which joins the end of the waitlist if necessary.
    pub fn new(policy: &HostPolicy) -> Self {
        let HostPolicy { key, pace, .. } = policy;
        Self {
            key: key.clone(),
            pace: *pace,
            slot: None,
            standing: Standing::New,
            deadline: None,
            waits_for_host_only: false,
        }
    }
}

/// The answer to a [`HostRequest`].
#[derive(Debug)]
pub enum Decision {
    /// It may be sent now.
    Go(HostPermit),
    /// A slot is reserved for it.
    At {
        /// The wait for the slot.
        wait: Duration,
        /// The slot, to pass on with the next request.
        slot: UnixMs,
    },
    /// Its slot is too far ahead to be reserved.
    Later {
        /// The wait before it asks again.
        wait: Duration,
        /// Its position in the host's waitlist.
        turn: UnixMs,
    },
    /// Its host allows it, but too many requests wait for the host's address.
    Crowded {
        /// The wait before it asks again.
        wait: Duration,
    },
    /// Its slot would come after its deadline.
    TooLate,
    /// An operator blocked the host.
    Blocked,
}

/// A position in a host's waitlist, and how often the URL came back for it.
pub type WaitlistPlace = (UnixMs, u8);

/// The reason why a request cannot be sent soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// Its slot is too far ahead: ask again at this time, with this position in the waitlist, if it has one.
    Later(UnixMs, Option<WaitlistPlace>),
    /// An operator blocked the host.
    Blocked,
    /// The store of the schedules failed for good.
    Failed(Error),
}

impl HostSchedules {
    /// Returns access to the schedules in `hosts`, with the rates of `settings`.
    pub fn new(hosts: Arc<dyn Hosts>, health: Arc<Health>, lapse: Duration, settings: &Settings) -> Self {
        let ceiling = Arc::new(Ceiling::new(settings.fetch.max_rate));
        let addresses = Arc::new(AddressRate::new(settings.politeness.address_rate));
        Self { hosts, health, in_flight: Arc::default(), lapse, ceiling, addresses }
    }

    /// Asks the schedules of hosts for many requests in one call. Decides on each, in order.
    ///
    /// # Errors
    /// Waits while the servers are away. Fails with errors that waiting does not help, and if any answer is
    /// missing.
    pub async fn ask_hosts(&self, requests: &[HostRequest]) -> Result<Vec<Decision>> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let asks: Vec<HostSlotRequest> = requests.iter().map(|request| self.question(request)).collect();
        let asked = Instant::now();
        let slots = self.reserve(&asks).await?;
        Ok(asks.into_iter().zip(slots).map(|(ask, slot)| self.decide(ask, slot, asked)).collect())
    }

    /// Asks for one request: first its host, then the host's `addresses`, waiting for at most `most` at each, then
    /// the rate limit of this process. A reserved slot is stored in `request`, to be passed on with the next call.
    ///
    /// # Errors
    /// As [`HostSchedules::ask_hosts`].
    pub async fn ask(
        &self,
        request: &mut HostRequest,
        addresses: &[IpAddr],
        most: Duration,
    ) -> Result<Decision> {
        let decision = self.ask_host(request).await?;
        let Decision::Go(permit) = decision else { return Ok(decision) };
        let host = permit.host().clone();
        let elsewhere = async {
            let away = self.at_addresses(&host, addresses, most).await?;
            if away.is_none() {
                self.ceiling.wait().await;
            }
            Ok(away)
        };
        self.wait_elsewhere(request, permit, elsewhere).await
    }

    /// Lets a request that its host allows wait for something else. `elsewhere` returns `None` when that wait is
    /// over, or the time to stay away. If the slot has passed by then, the host is asked for another one, and
    /// nothing else is waited for.
    ///
    /// # Errors
    /// As [`HostSchedules::ask_hosts`], and those of `elsewhere`.
    pub async fn wait_elsewhere(
        &self,
        request: &mut HostRequest,
        permit: HostPermit,
        elsewhere: impl Future<Output = Result<Option<Duration>>>,
    ) -> Result<Decision> {
        if std::mem::take(&mut request.waits_for_host_only) {
            return Ok(Decision::Go(permit));
        }
        if let Some(wait) = elsewhere.await? {
            return Ok(Decision::Crowded { wait });
        }
        if !permit.is_void() {
            return Ok(Decision::Go(permit));
        }
        drop(permit);
        request.slot = Some(UnixMs::now());
        let decision = self.ask_host(request).await?;
        request.waits_for_host_only = !matches!(decision, Decision::Go(_));
        Ok(decision)
    }

    /// Waits until a request to a host at these `addresses` may be sent, unless that is further ahead than slots are
    /// reserved. `turn` is what an earlier [`NotNow::Later`] said.
    ///
    /// # Errors
    /// Returns the reason why it is not sent.
    pub async fn wait(
        &self,
        policy: &HostPolicy,
        addresses: &[IpAddr],
        turn: Option<WaitlistPlace>,
    ) -> std::result::Result<HostPermit, NotNow> {
        let standing = Standing::new(turn.map(|(turn, _)| turn));
        let mut request = HostRequest { standing, ..HostRequest::new(policy) };
        loop {
            match self.ask(&mut request, addresses, NEAR).await.map_err(NotNow::Failed)? {
                Decision::Go(permit) => {
                    permit.wait_to_send().await;
                    return Ok(permit);
                }
                Decision::At { wait, .. } => sleep(wait).await,
                Decision::Later { wait, turn: new } => {
                    let (away, turn) = waitlisted(wait, new, turn, rand::random());
                    return Err(NotNow::Later(UnixMs::now().plus(away), Some(turn)));
                }
                Decision::Crowded { wait } => return Err(NotNow::Later(UnixMs::now().plus(wait), None)),
                Decision::Blocked => return Err(NotNow::Blocked),
                Decision::TooLate => unreachable!("it has no deadline"),
            }
        }
    }

    /// Waits until a request may be sent to those of the host's `addresses` that many hosts share, for at most
    /// `most` each. If that is not long enough, returns the time after which to come back.
    ///
    /// # Errors
    /// As [`HostSchedules::ask_hosts`].
    pub async fn at_addresses(
        &self,
        host: &HostKey,
        addresses: &[IpAddr],
        most: Duration,
    ) -> Result<Option<Duration>> {
        for address in self.addresses.shared(host, addresses) {
            if let Some(away) = self.at_address(address, most).await? {
                return Ok(Some(away));
            }
        }
        Ok(None)
    }

    async fn at_address(&self, address: IpAddr, most: Duration) -> Result<Option<Duration>> {
        let mut request = HostRequest {
            key: HostKey::address(address),
            pace: self.addresses.pace(),
            slot: None,
            standing: Standing::Aside,
            deadline: Some(UnixMs::now().plus(most)),
            waits_for_host_only: true,
        };
        loop {
            match self.ask_host(&mut request).await? {
                Decision::Go(_) => return Ok(None),
                Decision::At { wait, .. } => sleep(wait).await,
                Decision::Later { .. } | Decision::Crowded { .. } | Decision::TooLate | Decision::Blocked => {
                    return Ok(Some(self.addresses.come_back(address)));
                }
            }
        }
    }

    async fn ask_host(&self, request: &mut HostRequest) -> Result<Decision> {
        let (ask, asked) = (self.question(request), Instant::now());
        let slots = self.reserve(std::slice::from_ref(&ask)).await?;
        let Ok([slot]) = <[Slot; 1]>::try_from(slots) else { unreachable!("each question has its answer") };
        let decision = self.decide(ask, slot, asked);
        request.slot = if let Decision::At { slot, .. } = decision { Some(slot) } else { None };
        Ok(decision)
    }

    fn question(&self, request: &HostRequest) -> HostSlotRequest {
        let HostRequest { key, pace, slot, standing, deadline, .. } = request;
        let (pace, held, standing, deadline) = (*pace, *slot, *standing, *deadline);
        let slot_request =
            SlotRequest { pace, held, standing, deadline, token: rand::random(), lapse: self.lapse };
        HostSlotRequest { key: key.clone(), request: slot_request }
    }

    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
        let reserving = async || one_each(self.hosts.reserve(asks).await?, asks.len(), "slots");
        self.health.retry("reserving slots", reserving).await
    }

    fn decide(
        &self,
        HostSlotRequest { key, request }: HostSlotRequest,
        slot: Slot,
        asked: Instant,
    ) -> Decision {
        match slot {
            Slot::Now => Decision::Go(HostPermit::new(&self.in_flight, key, &request, asked)),
            Slot::Reserved { wait, at } => Decision::At { wait, slot: at },
            Slot::Later { wait, turn } => Decision::Later { wait, turn },
            Slot::TooLate => Decision::TooLate,
            Slot::Blocked => Decision::Blocked,
        }
    }

    /// Runs `work`, and meanwhile reports the requests that are over.
    pub async fn freeing<T>(&self, work: impl Future<Output = T>) -> T {
        let done = tokio::select! {
            done = work => done,
            never = self.in_flight.freeing(&*self.hosts) => match never {},
        };
        self.in_flight.free(&*self.hosts).await;
        done
    }

    /// Makes the whole fleet back off from a host that answered with `failure`, for as long as the host asks for, or
    /// else by `politeness`. Returns when the back-off ends. `crawl` is the crawl that asked, if known.
    ///
    /// # Errors
    /// As [`HostSchedules::ask_hosts`].
    pub async fn push_back(
        &self,
        key: &HostKey,
        politeness: &Politeness,
        failure: &Failure,
        crawl: Option<&CrawlRef>,
    ) -> Result<UnixMs> {
        let terms = BackoffTerms {
            asked: failure.retry_after,
            base: politeness.backoff,
            jitter: rand::random(),
            most: politeness.max_backoff,
        };
        let refusal =
            BackoffRequest { status: failure.status.unwrap_or_default(), terms, crawl: crawl.cloned() };
        self.in_flight.refused(key);
        let pushing = || self.hosts.push_back(key, &refusal);
        let until = self.health.retry("pushing a host back", pushing).await?;
        info!(host = %key, status = refusal.status, %until, "the host wants to be left alone");
        Ok(until)
    }
}

#[cfg(test)]
mod tests;
