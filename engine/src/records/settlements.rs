//! Settlements: what becomes of a URL or a task that a worker holds.

use async_trait::async_trait;
use trawl_common::frontier::Taken;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Claim, Finish, NewWork, Result};
use trawl_common::time::UnixMs;

/// Settles URLs and tasks that a worker holds, after admitting what they yield. Called by workers (`settle.rs`,
/// `links.rs`).
#[async_trait]
pub trait Settlements: Send + Sync {
    /// Admits the links of pages that this worker holds, like [`Admission::admit`](super::Admission::admit), up to the
    /// crawl's limit per host. Returns for each page, in order, the result for its links. If those of some pages do not
    /// fit, the call does not fail.
    async fn admit_links(&self, worker: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>>;

    /// Admits URLs of any spider that a page or task of another requests, like
    /// [`Admission::admit`](super::Admission::admit). The crawl is one of external publishers ([`CrawlRef::adhoc_of`]),
    /// and is created if it is unknown. Returns, in order, which were new.
    async fn take_in(&self, crawl: &CrawlRef, urls: &[NewWork]) -> Result<Vec<bool>>;

    /// Parks URLs that this worker holds until an instant. They are in the outbox until confirmed. A start that led
    /// here has ended; a URL that had not started keeps its count of starts. Returns, in order, whether the worker
    /// still held them; a repeated call before the confirmation returns the same.
    async fn park(&self, worker: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>>;

    /// Releases URLs that this worker holds and will not handle, as if they had just been queued.
    async fn release(&self, worker: &WorkerId, claims: &[Claim]) -> Result<()>;

    /// Sets the terminal state of URLs that this worker holds. Finishing the last URL after discovery has ended
    /// finishes the crawl.
    ///
    /// Returns, in order, which have ended, by this call or before it. The others are no longer this worker's, or the
    /// store has forgotten them: their messages are requeued.
    async fn finish(&self, worker: &WorkerId, finishes: &[Finish]) -> Result<Vec<bool>>;
}

/// A page with its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linking {
    /// The page.
    pub page: Claim,
    /// The targets of its links, each with the page as its referrer.
    pub links: Vec<NewWork>,
}

/// The result of admitting the links of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linked<T = Vec<Taken>> {
    /// The links are admitted: the result for each, in order.
    Taken(T),
    /// No link is admitted: the worker no longer holds the page.
    NotHeld,
    /// Not all links are admitted: the store is full. The page has to be submitted again.
    StoreFull,
}

impl<T> Linked<T> {
    /// Converts the admitted links with `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Linked<U> {
        match self {
            Self::Taken(taken) => Linked::Taken(f(taken)),
            Self::NotHeld => Linked::NotHeld,
            Self::StoreFull => Linked::StoreFull,
        }
    }

    /// The result for each link, if the worker held the page and the store was not full.
    pub fn taken(self) -> Option<T> {
        match self {
            Self::Taken(taken) => Some(taken),
            Self::NotHeld | Self::StoreFull => None,
        }
    }
}

/// A URL to park.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    /// The URL.
    pub claim: Claim,
    /// The time when its message returns ([`crate::Broker::wake`]).
    pub until: UnixMs,
    /// Whether it is parked after a failure: then its attempts are incremented.
    pub failed: bool,
}
