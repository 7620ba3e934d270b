//! Recovery: the sweep that finds what was lost.

use std::time::Duration;

use async_trait::async_trait;
use trawl_common::events::{CrawlEvent, HostEvent};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

/// Finds lost records, crawls that can end, and events to announce. Called by the sweeper, one worker of the fleet
/// (`upkeep.rs`); the probes that come back are reported by the worker that receives them (`settle.rs`).
#[async_trait]
pub trait Recovery: Send + Sync {
    /// One step of a round through all records, in search of lost ones: unconfirmed for longer than the frontier's
    /// `lost_after`, held by a worker that no longer extends its lease, or not arrived although a probe that was sent
    /// later has. They become new. Also ends crawls that can end. Only one process at a time sweeps; in any other a
    /// step finds nothing.
    async fn sweep(&self, worker: &WorkerId) -> Result<Sweep>;

    /// Records that a probe was sent through every queue at these times. The next probe shows whether this one
    /// returned.
    async fn probe_sent(&self, times: ProbeTimes) -> Result<()>;

    /// Records that probes have returned.
    async fn probes_returned(&self, probes: &[Probe]) -> Result<()>;

    /// Makes a crawl wait for parked URLs ([`Sweep::awaiting`]) for this long, and then for one more probe.
    async fn await_parked(&self, crawl: &CrawlRef, longest: Duration) -> Result<()>;

    /// Records that the dead letters of unreadable records ([`Sweep::corrupt`]) are published.
    async fn dead_letters_published(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Records that a crawl's event ([`Sweep::news`]) has been announced.
    async fn announced(&self, event: &CrawlEvent) -> Result<()>;

    /// Records that a host's event ([`Sweep::hosts`]) has been announced.
    async fn hosts_announced(&self, event: &HostEvent) -> Result<()>;
}

/// The findings of one step of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Messages of lost records, some thousand at most: publish and confirm them.
    pub lost: Vec<Message>,
    /// Send a probe with these times through every queue, then call [`Recovery::probe_sent`].
    pub probe: Option<ProbeTimes>,
    /// Crawls that wait for everything that may be parked: report the time that takes to each
    /// ([`Recovery::await_parked`]).
    pub awaiting: Vec<CrawlRef>,
    /// Dead letters of unreadable records: publish them, then call [`Recovery::dead_letters_published`].
    pub corrupt: Vec<DeadLetter>,
    /// Events of crawls that were not announced yet: publish them, then call [`Recovery::announced`].
    pub news: Vec<CrawlEvent>,
    /// Events of hosts that were not announced yet: publish them, then call [`Recovery::hosts_announced`].
    pub hosts: Vec<HostEvent>,
    /// Crawls that do not end by themselves, because the store has evicted data that may have been theirs. Report them
    /// each time.
    pub evicted: Vec<CrawlRef>,
    /// When to take the next step.
    pub rest: Duration,
}

/// A message of the engine's own that goes through a queue behind all others. When it returns, everything that was sent
/// before it has arrived. If the probe before it has not returned by then, the queue has lost its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The queue of the probe.
    pub source: SourceQueue,
    /// The times of the probe.
    pub times: ProbeTimes,
}

/// The time when a probe was sent, and that of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTimes {
    /// When it was sent, by the frontier's clock.
    pub sent: UnixMs,
    /// When the one before it was sent; zero for the first.
    pub previous: UnixMs,
}
