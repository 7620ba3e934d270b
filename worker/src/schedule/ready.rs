//! Jobs that may begin.

use tokio::sync::OwnedSemaphorePermit;
use trawl_common::politeness::permit::HostPermit;

use crate::fetch::domains::UnderWay;
use crate::handlers::NoPage;
use crate::job::Job;

/// A job that may begin.
pub(crate) struct Ready {
    pub(crate) job: Job,
    pub(crate) next: Next,
}

/// What a job begins with.
pub(crate) enum Next {
    /// It is fetched now.
    Fetch(Box<Permits>),
    /// There is no page for it, and its spider's program takes in why.
    HandOver(Box<NoPage>),
}

/// What a job has that may be fetched now.
pub(crate) struct Permits {
    pub(crate) host_permit: HostPermit,
    /// Not for a page of a slow domain, which has a place.
    pub(crate) fetch_permit: Option<OwnedSemaphorePermit>,
    pub(crate) under_way: UnderWay,
    /// Whether no other such job begins until this one is settled.
    pub(crate) is_alone: bool,
}
