//! Hosts: who may be asked when, and what their robots.txt says.

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
/// [`crate::politeness::gcra::Schedule`], on the clock of whoever keeps the schedules.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// Reserves, atomically and in order, the next slot of each host for one URL, or uses the one that it holds.
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>>;

    /// Has requests that take long count as in flight until `lapse` from now.
    async fn stay(&self, visits: &[InFlightRequest], lapse: Duration) -> Result<()>;

    /// Notes that requests are over: they no longer count as in flight.
    async fn leave(&self, ended: &[Ended]) -> Result<()>;

    /// Notes that a host wants to be left alone. Returns when it may be asked again, by this machine's clock.
    async fn push_back(&self, key: &HostKey, refusal: &BackoffRequest) -> Result<UnixMs>;

    /// What is known of the robots.txt of this name. Of those who ask when nothing is known, one is to fetch it ([`RobotsEntry::Yours`]).
    /// If it dies, another one is to do so after `lease`.
    async fn robots(&self, key: &RobotsKey, lease: Duration) -> Result<RobotsEntry>;

    /// Keeps a robots.txt for `ttl`. What is kept is for whoever asks from now on. A store that is full gives it up.
    async fn keep_robots(&self, key: &RobotsKey, file: &RobotsFile, ttl: Duration) -> Result<()>;

    /// Lets another fetch a robots.txt, for this one could not.
    async fn give_up_robots(&self, key: &RobotsKey) -> Result<()>;
}

/// What people see of hosts, and can do to them.
#[async_trait]
pub trait HostControl: Send + Sync {
    /// The hosts that were asked lately, that want to be left alone, or that are blocked, by name.
    async fn hosts(&self) -> Result<Vec<HostState>>;

    /// One host; `None` if nothing is known of it.
    async fn host(&self, key: &HostKey) -> Result<Option<HostState>>;

    /// The robots.txt that is kept under this name, if one is.
    async fn known_robots(&self, key: &RobotsKey) -> Result<Option<RobotsFile>>;

    /// Has nobody ask a host any more.
    async fn block(&self, key: &HostKey) -> Result<()>;

    /// Lifts a block and a back-off. Returns whether there was one.
    async fn unblock(&self, key: &HostKey) -> Result<bool>;
}

/// A request for a slot, and the host that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSlotRequest {
    /// Whose schedule.
    pub key: HostKey,
    /// What is asked of that.
    pub request: SlotRequest,
}

/// A request in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlightRequest {
    /// In whose schedule.
    pub key: HostKey,
    /// Its name in that.
    pub token: u64,
}

/// A request that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub visit: InFlightRequest,
    /// Whether the host answered it, and did not want to be left alone: then a streak of refusals is over.
    pub is_welcome: bool,
}

/// What a host answered that wants to be left alone.
#[derive(Clone, Debug, PartialEq)]
pub struct BackoffRequest {
    /// The status of the answer.
    pub status: u16,
    /// For how long; what it asked for is its `Retry-After` (RFC 9110 10.2.3).
    pub terms: BackoffTerms,
    /// The crawl in which it was asked, where that is known.
    pub crawl: Option<CrawlRef>,
}

/// What is known of a robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsEntry {
    /// It was fetched.
    Known(RobotsFile),
    /// Nothing, and nobody is fetching it: whoever gets this reply fetches it.
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
    /// The turn of the last one in line; in the past if there is no line.
    pub line: UnixMs,
    /// Requests under way, where their number is limited.
    pub under_way: u64,
    /// How long a request took lately, where that is known.
    pub latency: Option<Duration>,
    /// The latest back-off, if it is not forgotten.
    pub backoff: Option<HostBackoff>,
    /// Since when nobody may ask it.
    pub blocked: Option<UnixMs>,
}

/// Why and until when a host is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostBackoff {
    /// When it asked for it.
    pub since: UnixMs,
    /// When it may be asked again.
    pub until: UnixMs,
    /// How many times in a row it did without saying for how long.
    pub strikes: u32,
    /// The status that it answered.
    pub status: u16,
}
