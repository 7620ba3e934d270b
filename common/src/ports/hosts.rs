//! Hosts: when each may be asked, and its robots.txt.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::Result;
use crate::names::CrawlRef;
use crate::politeness::gcra::{BackoffTerms, Slot, SlotRequest};
use crate::politeness::robots::RobotsKey;
use crate::time::UnixMs;
use crate::web::host::HostKey;

/// Keeps every host's schedule and robots.txt, for all workers together. The arithmetic is that of
/// [`crate::politeness::gcra::Schedule`], on the clock of the store.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// Reserves, atomically and in order, the next slot of each host for one URL, or uses the one that it holds.
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>>;

    /// Extends requests that take long: they count as in flight until `lapse` from now.
    async fn stay(&self, visits: &[InFlightRequest], lapse: Duration) -> Result<()>;

    /// Ends requests: they no longer count as in flight.
    async fn leave(&self, ended: &[Ended]) -> Result<()>;

    /// Starts a back-off that a host asked for. Returns its end, by this machine's clock.
    async fn push_back(&self, key: &HostKey, refusal: &BackoffRequest) -> Result<UnixMs>;

    /// What is known of the robots.txt of this name. If nothing is known, one caller gets [`RobotsEntry::Yours`] and has to fetch it; if that
    /// one dies, another gets it after `lease`.
    async fn robots(&self, key: &RobotsKey, lease: Duration) -> Result<RobotsEntry>;

    /// Keeps a robots.txt for `ttl`. A store that is full gives it up.
    async fn keep_robots(&self, key: &RobotsKey, file: &RobotsFile, ttl: Duration) -> Result<()>;

    /// Lets another worker fetch a robots.txt that this one could not fetch.
    async fn give_up_robots(&self, key: &RobotsKey) -> Result<()>;
}

/// What people see of hosts, and can do to them.
#[async_trait]
pub trait HostControl: Send + Sync {
    /// The hosts that were asked lately, that are in a back-off, or that are blocked, by name.
    async fn hosts(&self) -> Result<Vec<HostState>>;

    /// One host; `None` if nothing is known of it.
    async fn host(&self, key: &HostKey) -> Result<Option<HostState>>;

    /// The robots.txt that is kept under this name, if one is.
    async fn known_robots(&self, key: &RobotsKey) -> Result<Option<RobotsFile>>;

    /// Blocks a host: it is not asked any more.
    async fn block(&self, key: &HostKey) -> Result<()>;

    /// Lifts a block and a back-off. Returns whether there was one.
    async fn unblock(&self, key: &HostKey) -> Result<bool>;
}

/// A request for a slot, and the host that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSlotRequest {
    /// Whose schedule.
    pub key: HostKey,
    /// The request.
    pub request: SlotRequest,
}

/// A request in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlightRequest {
    /// In whose schedule.
    pub key: HostKey,
    /// Its id there.
    pub token: u64,
}

/// A request that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub visit: InFlightRequest,
    /// Whether the host answered it without asking for a back-off: that ends a streak of refusals.
    pub is_welcome: bool,
}

/// A host's answer that asks for a back-off.
#[derive(Clone, Debug, PartialEq)]
pub struct BackoffRequest {
    /// The status of the answer.
    pub status: u16,
    /// For how long: by its `Retry-After` (RFC 9110 10.2.3), if it has one.
    pub terms: BackoffTerms,
    /// The crawl in which it was asked, where that is known.
    pub crawl: Option<CrawlRef>,
}

/// What is known of a robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsEntry {
    /// It was fetched.
    Known(RobotsFile),
    /// Nothing, and no one is fetching it: the caller has to.
    Yours,
    /// Another is fetching it.
    Awaited,
}

/// A robots.txt as an origin answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsFile {
    /// The status of the answer; 0 if there was none.
    pub status: u16,
    /// The start of the file, or why there was no answer.
    pub body: Bytes,
}

/// What is known of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// Under which name.
    pub key: HostKey,
    /// The time between two requests, as last asked for; zero for no limit.
    pub interval: Option<Duration>,
    /// The next free slot.
    pub next: UnixMs,
    /// The end of its waitlist; in the past if there is none.
    pub line: UnixMs,
    /// Requests in flight, where their number is limited.
    pub under_way: u64,
    /// Requests that were let go since this minute of the clock began: of workers, of producers, and of programs through the proxy.
    pub requests: u64,
    /// How long a request took lately, where that is known.
    pub latency: Option<Duration>,
    /// The latest back-off, if it is not forgotten.
    pub backoff: Option<HostBackoff>,
    /// Since when it is blocked.
    pub blocked: Option<UnixMs>,
}

/// A host's back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostBackoff {
    /// When it began.
    pub since: UnixMs,
    /// When it may be asked again.
    pub until: UnixMs,
    /// How many refusals without `Retry-After` came in a row.
    pub strikes: u32,
    /// The status that it answered.
    pub status: u16,
}
