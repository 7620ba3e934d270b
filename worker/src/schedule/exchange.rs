//! Slots that URLs of this worker hand over to requests of programs, and to urgent requests of crawls.
//!
//! A crawl has reserved the slots of its host for up to half a minute. So a request that asked for one now
//! would come after all URLs with reserved slots. Instead it exchanges slots with a URL that is due in this
//! worker: the request is sent in the slot of the URL, and the URL waits for the slot of the request. No
//! additional slot is used, so the pace of the host is unchanged.
//!
//! Each request first lets one URL of its host pass, so requests take at most half of the slots that this
//! worker has for a host.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::time::{Instant, sleep_until};
use trawl_common::host_schedules::HostRequest;
use trawl_common::priority::Priority;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

/// A reserved slot, and when it is due by this process's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reserved {
    pub(crate) slot: UnixMs,
    due: Instant,
}

impl Reserved {
    /// The time until it is due.
    pub(crate) fn wait(self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }
}

/// The order of precedence, from lowest to highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// A URL or a request of a crawl, by its priority.
    OfCrawl(Priority),
    /// A request of a program, which waits for it.
    OfProgram,
}

/// The requests that wait for slots. Those of each host are ordered by rank, then by arrival.
#[derive(Debug, Default)]
pub(crate) struct SlotExchange(Mutex<HashMap<HostKey, VecDeque<Waiting>>>);

#[derive(Debug)]
struct Waiting {
    own: Reserved,
    rank: Rank,
    /// Whether it has let a URL pass.
    has_let_go: bool,
    earlier: Sender<UnixMs>,
}

impl SlotExchange {
    /// Waits for `slot` of `host`, or for an earlier one that a URL hands over. Returns the slot to use now.
    pub(crate) async fn wait(&self, host: &HostKey, rank: Rank, slot: UnixMs, wait: Duration) -> UnixMs {
        let own = Reserved { slot, due: Instant::now() + wait };
        let (earlier, handed_over) = oneshot::channel();
        let waiting = Waiting { own, rank, has_let_go: false, earlier };
        self.enter(host, waiting);
        let mut offer = Offer { exchange: self, host, handed_over };
        tokio::select! {
            biased;
            Ok(earlier) = &mut offer.handed_over => earlier,
            () = sleep_until(own.due) => offer.withdraw().unwrap_or(slot),
        }
    }

    /// The number of requests that wait for slots of a host.
    pub(super) fn waiting(&self, host: &HostKey) -> usize {
        self.0.lock().get(host).map_or(0, VecDeque::len)
    }

    /// Hands the slot of a URL over to a request of its host with a higher rank, and returns the request's
    /// slot, for which the URL is to wait. `None` if the URL keeps its slot. `url` is the request for the
    /// slot, which is due. A slot that has passed is of no use to any request.
    pub(super) fn exchange(&self, url: &HostRequest, rank: Rank, now: UnixMs) -> Option<Reserved> {
        let is_good = |slot: &UnixMs| now <= slot.plus(url.pace.honoured());
        let slot = url.slot.filter(|slot| !url.waits_for_host_only && is_good(slot))?;
        let mut hosts = self.0.lock();
        let requests = hosts.get_mut(&url.key)?;
        loop {
            let first = requests.front_mut()?;
            let is_too_late = url.deadline.is_some_and(|deadline| deadline < first.own.slot);
            if is_too_late || first.rank <= rank || !std::mem::replace(&mut first.has_let_go, true) {
                return None;
            }
            let Waiting { own, earlier, .. } = requests.pop_front()?;
            // If the receiver has gone, it removes the remaining entry itself.
            if earlier.send(slot).is_ok() {
                return Some(own);
            }
        }
    }

    fn enter(&self, host: &HostKey, waiting: Waiting) {
        let mut hosts = self.0.lock();
        let requests = hosts.entry(host.clone()).or_default();
        let at = requests.partition_point(|before| before.rank >= waiting.rank);
        requests.insert(at, waiting);
    }
}

/// A request's offer to exchange its slot, until it is dropped.
struct Offer<'a> {
    exchange: &'a SlotExchange,
    host: &'a HostKey,
    handed_over: Receiver<UnixMs>,
}

impl Offer<'_> {
    /// Ends the offer. Returns the slot that was handed over before, if there was one.
    fn withdraw(&mut self) -> Option<UnixMs> {
        self.handed_over.close();
        self.handed_over.try_recv().ok()
    }
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        self.handed_over.close();
        if let Entry::Occupied(mut host) = self.exchange.0.lock().entry(self.host.clone()) {
            host.get_mut().retain(|waiting| !waiting.earlier.is_closed());
            if host.get().is_empty() {
                host.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;
    use tokio::task::yield_now;
    use trawl_common::settings::Politeness;
    use trawl_common::web::url::CanonicalUrl;

    use super::*;

    const OWN: Duration = Duration::from_secs(20);

    fn policy_of(host: &str) -> HostRequest {
        let url: CanonicalUrl = format!("http://{host}/").parse().unwrap();
        HostRequest::new(&Politeness::default().host_policy(&url.host()))
    }

    /// A URL whose slot is due.
    fn url(slot: u64) -> HostRequest {
        HostRequest { slot: Some(UnixMs(slot)), ..policy_of("a.example") }
    }

    /// The result of an exchange at the very instant of a URL's slot.
    fn at_once(exchange: &SlotExchange, url: &HostRequest) -> Option<Reserved> {
        exchange.exchange(url, usual(), url.slot.unwrap_or(UnixMs(2)))
    }

    /// Starts a request that waits for this slot, which is `OWN` away.
    fn request(exchange: &Arc<SlotExchange>, slot: u64) -> tokio::task::JoinHandle<UnixMs> {
        request_of(exchange, Rank::OfProgram, slot)
    }

    fn request_of(exchange: &Arc<SlotExchange>, rank: Rank, slot: u64) -> tokio::task::JoinHandle<UnixMs> {
        let (exchange, key) = (Arc::clone(exchange), url(0).key);
        tokio::spawn(async move { exchange.wait(&key, rank, UnixMs(slot), OWN).await })
    }

    fn of_crawl(priority: f64) -> Rank {
        Rank::OfCrawl(priority.try_into().unwrap())
    }

    /// The rank without a priority.
    fn usual() -> Rank {
        of_crawl(0.0)
    }

    /// Returns an exchange with a waiting request, which has let one URL pass: the next one hands over its
    /// slot.
    async fn with_request(slot: u64) -> (Arc<SlotExchange>, tokio::task::JoinHandle<UnixMs>) {
        let exchange = Arc::default();
        let request = request(&exchange, slot);
        yield_now().await;
        assert_eq!(at_once(&exchange, &url(1)), None);
        (exchange, request)
    }

    #[tokio::test(start_paused = true)]
    async fn every_second_url_exchanges_its_slot_with_the_request_that_waits_for_longest() {
        let exchange = Arc::default();
        let requests = [request(&exchange, 21), request(&exchange, 22)];
        yield_now().await;
        let given: Vec<_> =
            (1..=6).map(|slot| at_once(&exchange, &url(slot)).map(|later| later.slot.0)).collect();
        assert_eq!(given, [None, Some(21), None, Some(22), None, None]);
        let got = futures::future::join_all(requests).await;
        assert_eq!(got.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [UnixMs(2), UnixMs(4)]);
        assert!(exchange.0.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn programs_come_first_then_the_most_urgent_and_nothing_waits_for_what_is_no_more_urgent() {
        let exchange = Arc::default();
        let ranks = [of_crawl(1.0), of_crawl(2.0), Rank::OfProgram, of_crawl(2.0)];
        let requests = [0, 1, 2, 3].map(|number| request_of(&exchange, ranks[number], 21 + number as u64));
        yield_now().await;
        let of = |rank: Rank, slot: u64| {
            exchange.exchange(&url(slot), rank, UnixMs(slot)).map(|later| later.slot.0)
        };
        let given: Vec<_> = (1..=4).map(|slot| of(usual(), slot)).collect();
        assert_eq!(given, [None, Some(23), None, Some(22)]);
        assert_eq!([5, 6].map(|slot| of(of_crawl(2.0), slot)), [None, None], "no more urgent than that");
        assert_eq!([7, 8].map(|slot| of(of_crawl(1.5), slot)), [None, Some(24)]);
        assert_eq!([9, 10].map(|slot| of(of_crawl(1.0), slot)), [None, None]);
        assert_eq!((exchange.waiting(&url(0).key), requests.len()), (1, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_url_waits_for_the_slot_of_the_request_for_as_long_as_that_would_have() {
        let (exchange, request) = with_request(21).await;
        tokio::time::advance(OWN / 4).await;
        assert_eq!(at_once(&exchange, &url(2)).map(Reserved::wait), Some(OWN / 4 * 3));
        assert_eq!(request.now_or_never().map(Result::unwrap), None, "it runs when it is woken");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_url_a_request_waits_for_its_own_slot() {
        let exchange = Arc::<SlotExchange>::default();
        let (begun, key) = (Instant::now(), url(0).key);
        assert_eq!(exchange.wait(&key, Rank::OfProgram, UnixMs(21), OWN).await, UnixMs(21));
        assert_eq!(begun.elapsed(), OWN);
        assert_eq!(at_once(&exchange, &url(1)), None);
        assert!(exchange.0.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_url_keeps_its_slot_that_would_be_too_late_or_has_none_or_is_of_another_host() {
        let (exchange, _request) = with_request(21).await;
        let others = [
            HostRequest { deadline: Some(UnixMs(20)), ..url(2) },
            HostRequest { waits_for_host_only: true, ..url(2) },
            HostRequest { slot: None, ..url(2) },
            HostRequest { slot: Some(UnixMs(2)), ..policy_of("b.example") },
        ];
        assert!(others.iter().all(|url| at_once(&exchange, url).is_none()));
        assert!(at_once(&exchange, &HostRequest { deadline: Some(UnixMs(22)), ..url(2) }).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_has_gone_gets_no_slot() {
        let exchange = Arc::default();
        let (gone, stays) = (request(&exchange, 21), request(&exchange, 22));
        yield_now().await;
        gone.abort();
        let _ = gone.await;
        assert_eq!(at_once(&exchange, &url(1)), None);
        assert_eq!(at_once(&exchange, &url(2)).map(|later| later.slot), Some(UnixMs(22)));
        assert_eq!(stays.await.unwrap(), UnixMs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_that_has_passed_is_handed_to_nobody() {
        let (exchange, _request) = with_request(21).await;
        let interval = url(2).pace.interval.as_millis() as u64;
        assert_eq!(exchange.exchange(&url(2), usual(), UnixMs(3 + interval / 2)), None);
        assert!(exchange.exchange(&url(2), usual(), UnixMs(2 + interval / 2)).is_some());
    }
}
