//! Permission to send one request to a host, which counts as in flight until it is given back.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::debug;

use crate::politeness::gcra::SlotRequest;
use crate::ports::{Ended, Hosts, InFlightRequest};
use crate::web::host::HostKey;

/// Permission to send one request to a host now. The request counts as in flight until this is dropped.
#[derive(Debug)]
pub struct HostPermit {
    /// The time after which the slot has passed.
    void_after: Instant,
    visit: InFlightRequest,
    is_counted: bool,
    is_welcome: bool,
    in_flight: Arc<InFlight>,
}

impl HostPermit {
    /// Creates the permit for a request that was granted at this moment.
    pub fn new(in_flight: &Arc<InFlight>, key: HostKey, request: &SlotRequest) -> Self {
        let SlotRequest { pace, token, .. } = *request;
        let visit = InFlightRequest { key, token };
        let is_counted = pace.concurrency > 0;
        if is_counted {
            in_flight.enter(visit.clone());
        }
        let void_after = Instant::now() + pace.grace();
        Self { void_after, visit, is_counted, is_welcome: false, in_flight: Arc::clone(in_flight) }
    }

    /// Returns the key of the schedule that gave it.
    pub fn host(&self) -> &HostKey {
        &self.visit.key
    }

    /// Returns whether its slot has passed unused; then it needs another one.
    pub(crate) fn is_void(&self) -> bool {
        Instant::now() > self.void_after
    }

    /// Ends the request. If the host answered as it should, it no longer counts as in flight. Otherwise returns
    /// the permit, which counts until the fleet knows whether the host asked for a back-off.
    pub fn end(mut self, is_welcome: bool) -> Option<Self> {
        self.is_welcome = is_welcome;
        (!is_welcome).then_some(self)
    }
}

impl Drop for HostPermit {
    fn drop(&mut self) {
        self.in_flight.leave(&self.visit, self.is_counted, self.is_welcome);
    }
}

/// The requests of a process in flight, and the finished ones that the store of the schedules still counts.
#[derive(Debug, Default)]
pub struct InFlight {
    lists: Mutex<Lists>,
    some_over: Notify,
}

#[derive(Debug, Default)]
struct Lists {
    under_way: HashMap<u64, (InFlightRequest, Instant)>,
    over: Vec<Ended>,
    /// The hosts that asked for a back-off, and have not answered since.
    refusing: HashSet<HostKey>,
}

impl InFlight {
    fn enter(&self, visit: InFlightRequest) {
        self.lists().under_way.insert(visit.token, (visit, Instant::now()));
    }

    fn leave(&self, visit: &InFlightRequest, is_counted: bool, is_welcome: bool) {
        let mut lists = self.lists();
        lists.under_way.remove(&visit.token);
        // A request that is not counted frees nothing, but it may end a streak of refusals.
        let ends_streak = is_welcome && lists.refusing.remove(&visit.key);
        if is_counted || ends_streak {
            lists.over.push(Ended { visit: visit.clone(), is_welcome });
            self.some_over.notify_one();
        }
    }

    /// Notes that a host asked for a back-off.
    pub fn refused(&self, key: &HostKey) {
        self.lists().refusing.insert(key.clone());
    }

    /// Returns the requests in flight for at least `age`.
    pub fn older_than(&self, age: Duration) -> Vec<InFlightRequest> {
        let lists = self.lists();
        let old = lists.under_way.values().filter(|(_, since)| since.elapsed() >= age);
        old.map(|(visit, _)| visit.clone()).collect()
    }

    /// Reports finished requests to `hosts`, in batches, until the future is dropped.
    pub async fn freeing(&self, hosts: &dyn Hosts) -> Infallible {
        loop {
            self.some_over.notified().await;
            self.free(hosts).await;
        }
    }

    /// Reports the requests finished so far to `hosts`. Requests that cannot be reported lapse.
    pub async fn free(&self, hosts: &dyn Hosts) {
        let over = std::mem::take(&mut self.lists().over);
        if !over.is_empty()
            && let Err(error) = hosts.leave(&over).await
        {
            debug!(%error, "requests are over and still counted; they lapse");
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
