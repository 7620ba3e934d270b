//! Hosts: when each may be requested, and its robots.txt.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::names::CrawlRef;
use crate::politeness::gcra::{BackoffTerms, Slot, SlotRequest};
use crate::politeness::robots::{RobotsFile, RobotsKey};
use crate::time::UnixMs;
use crate::web::host::HostKey;

/// Keeps every host's schedule and robots.txt, for all workers together. The arithmetic is that of
/// [`crate::politeness::gcra::Schedule`], on the clock of the store.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// Reserves, atomically and in order, the next slot of each host for one URL, or uses the slot that it holds.
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>>;

    /// Extends long requests: they count as in flight until `lapse` from now.
    async fn stay(&self, visits: &[InFlightRequest], lapse: Duration) -> Result<()>;

    /// Ends requests: they no longer count as in flight.
    async fn leave(&self, ended: &[Ended]) -> Result<()>;

    /// Records requests that were sent late just now, so that the next one to each host comes as much later.
    async fn sent_late(&self, sent: &[SentLate]) -> Result<()>;

    /// Starts a back-off that a host asked for. Returns its end, by this machine's clock.
    async fn push_back(&self, key: &HostKey, refusal: &BackoffRequest) -> Result<UnixMs>;

    /// Returns what is known of the robots.txt under this key. If nothing is known, one caller gets
    /// [`RobotsEntry::Yours`] and has to fetch it; if that caller dies, another gets it after `lease`.
    async fn robots(&self, key: &RobotsKey, lease: Duration) -> Result<RobotsEntry>;

    /// Keeps a robots.txt for `ttl`. A full store drops it.
    async fn keep_robots(&self, key: &RobotsKey, file: &RobotsFile, ttl: Duration) -> Result<()>;

    /// Lets another worker fetch a robots.txt that this one could not fetch.
    async fn give_up_robots(&self, key: &RobotsKey) -> Result<()>;
}

/// Operator view of hosts, and commands for them.
#[async_trait]
pub trait HostControl: Send + Sync {
    /// Returns the hosts that were requested lately, are in a back-off, or are blocked, by name.
    async fn hosts(&self) -> Result<Vec<HostState>>;

    /// Returns one host; `None` if nothing is known of it.
    async fn host(&self, key: &HostKey) -> Result<Option<HostState>>;

    /// Returns the robots.txt stored under this key, if any.
    async fn known_robots(&self, key: &RobotsKey) -> Result<Option<RobotsFile>>;

    /// Blocks a host: nothing is requested from it any more.
    async fn block(&self, key: &HostKey) -> Result<()>;

    /// Lifts a block and a back-off. Returns whether there was one.
    async fn unblock(&self, key: &HostKey) -> Result<bool>;
}

/// A request for a slot, and the host that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSlotRequest {
    /// The host, by the key of its schedule.
    pub key: HostKey,
    /// The request.
    pub request: SlotRequest,
}

/// A request in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlightRequest {
    /// The key of the host's schedule.
    pub key: HostKey,
    /// The id of the request in that schedule.
    pub token: u64,
}

/// A request that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The request.
    pub visit: InFlightRequest,
    /// Whether the host answered it without asking for a back-off, which ends a streak of refusals.
    pub is_welcome: bool,
}

/// A request that was sent late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentLate {
    /// The key of the host's schedule.
    pub key: HostKey,
    /// The minimum time until the next request is granted.
    pub next_after: Duration,
}

/// A host's answer that asks for a back-off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackoffRequest {
    /// The status of the answer.
    pub status: u16,
    /// The length of the back-off: by its `Retry-After` (RFC 9110 10.2.3), if it has one.
    pub terms: BackoffTerms,
    /// The crawl that made the request, if known.
    pub crawl: Option<CrawlRef>,
}

/// The state of a robots.txt in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RobotsEntry {
    /// It was fetched.
    Known(RobotsFile),
    /// Nothing is known, and no one is fetching it: the caller has to.
    Yours,
    /// Another is fetching it.
    Awaited,
}

/// The state of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// The key of its schedule.
    pub key: HostKey,
    /// The time between two requests, as used last; zero for no limit.
    pub interval: Option<Duration>,
    /// The next free slot.
    pub next: UnixMs,
    /// The end of its waitlist; in the past if there is none.
    pub line: UnixMs,
    /// Number of requests in flight, if it is limited.
    pub under_way: u64,
    /// Number of requests permitted in the current minute: of workers, of producers, and of programs through the
    /// proxy.
    pub requests: u64,
    /// The duration of a recent request, if known.
    pub latency: Option<Duration>,
    /// The latest back-off, unless it is forgotten.
    pub backoff: Option<HostBackoff>,
    /// When it was blocked, if it is.
    pub blocked: Option<UnixMs>,
}

/// A host's back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostBackoff {
    /// When it began.
    pub since: UnixMs,
    /// When the host may be requested again.
    pub until: UnixMs,
    /// Number of consecutive refusals without `Retry-After`.
    pub strikes: u32,
    /// The status that it answered.
    pub status: u16,
}
