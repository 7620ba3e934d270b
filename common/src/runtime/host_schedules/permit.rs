//! Permission to send one request to a host, which counts as in flight until it is given back.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::politeness::gcra::{Pace, SlotRequest, UNPACED_GRACE};
use crate::ports::{Ended, Hosts, InFlightRequest, SentLate};
use crate::web::host::HostKey;

/// Permission to send one request to a host now. The request counts as in flight until this is dropped.
#[derive(Debug)]
pub struct HostPermit {
    pace: Pace,
    /// When its schedule was asked.
    asked: Instant,
    /// When its schedule answered.
    granted: Instant,
    visit: InFlightRequest,
    is_counted: bool,
    is_welcome: bool,
    in_flight: Arc<InFlight>,
}

impl HostPermit {
    /// Creates the permit for a request that was granted at this moment by a schedule that was asked then.
    pub fn new(in_flight: &Arc<InFlight>, key: HostKey, request: &SlotRequest, asked: Instant) -> Self {
        let SlotRequest { pace, token, .. } = *request;
        let visit = InFlightRequest { key, token };
        let is_counted = pace.concurrency > 0;
        if is_counted {
            in_flight.enter(visit.clone());
        }
        let (granted, in_flight) = (Instant::now(), Arc::clone(in_flight));
        Self { pace, asked, granted, visit, is_counted, is_welcome: false, in_flight }
    }

    /// Returns the key of the schedule that gave it.
    pub fn host(&self) -> &HostKey {
        &self.visit.key
    }

    /// Returns whether its slot has passed unused; then it needs another one.
    pub(crate) fn is_void(&self) -> bool {
        self.granted.elapsed() > self.pace.grace()
    }

    /// Returns whether it was granted so long ago that other requests may have been granted since, which would all be sent
    /// at once: the machine or a store has stood still meanwhile. Then it needs another slot.
    pub fn has_lapsed(&self) -> bool {
        self.granted.elapsed() > self.pace.grace().max(UNPACED_GRACE)
    }

    /// Waits for the instant at which the request is to be sent: each is sent as long after its grant, however
    /// busy this machine is. If this one is late nevertheless, the schedule learns of it.
    pub async fn wait_to_send(&self) {
        let delay = self.pace.send_delay();
        // A sleep that is over takes up to a millisecond nevertheless.
        if !delay.is_zero() {
            sleep_until(self.granted + delay).await;
        }
        if let Some(next_after) = self.pace.next_after(self.asked.elapsed()) {
            self.in_flight.sent_late(SentLate { key: self.visit.key.clone(), next_after });
        }
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

/// The requests of a process in flight, and what the store of the schedules is still to be told: which are finished,
/// and which were sent late.
#[derive(Debug, Default)]
pub struct InFlight {
    lists: Mutex<Lists>,
    some_to_tell: Notify,
}

#[derive(Debug, Default)]
struct Lists {
    under_way: HashMap<u64, (InFlightRequest, Instant)>,
    over: Vec<Ended>,
    late: Vec<SentLate>,
    /// The hosts that asked for a back-off, and have not answered since.
    refusing: HashSet<HostKey>,
}

impl InFlight {
    fn enter(&self, visit: InFlightRequest) {
        self.lists.lock().under_way.insert(visit.token, (visit, Instant::now()));
    }

    fn leave(&self, visit: &InFlightRequest, is_counted: bool, is_welcome: bool) {
        let mut lists = self.lists.lock();
        lists.under_way.remove(&visit.token);
        // A request that is not counted frees nothing, but it may end a streak of refusals.
        let ends_streak = is_welcome && lists.refusing.remove(&visit.key);
        if is_counted || ends_streak {
            lists.over.push(Ended { visit: visit.clone(), is_welcome });
            self.some_to_tell.notify_one();
        }
    }

    fn sent_late(&self, sent: SentLate) {
        self.lists.lock().late.push(sent);
        self.some_to_tell.notify_one();
    }

    /// Notes that a host asked for a back-off.
    pub fn refused(&self, key: &HostKey) {
        self.lists.lock().refusing.insert(key.clone());
    }

    /// Returns the requests in flight for at least `age`.
    pub fn older_than(&self, age: Duration) -> Vec<InFlightRequest> {
        let lists = self.lists.lock();
        let old = lists.under_way.values().filter(|(_, since)| since.elapsed() >= age);
        old.map(|(visit, _)| visit.clone()).collect()
    }

    /// Reports late and finished requests to `hosts`, in batches, until the future is dropped.
    pub async fn freeing(&self, hosts: &dyn Hosts) -> Infallible {
        loop {
            self.some_to_tell.notified().await;
            self.free(hosts).await;
        }
    }

    /// Reports the requests sent late and finished so far to `hosts`. Requests that cannot be reported lapse.
    pub async fn free(&self, hosts: &dyn Hosts) {
        let (late, over) = {
            let mut lists = self.lists.lock();
            (std::mem::take(&mut lists.late), std::mem::take(&mut lists.over))
        };
        if !late.is_empty()
            && let Err(error) = hosts.sent_late(&late).await
        {
            debug!(%error, "requests were sent late, and the next ones may follow too soon");
        }
        if !over.is_empty()
            && let Err(error) = hosts.leave(&over).await
        {
            debug!(%error, "requests are over and still counted; they lapse");
        }
    }
}
