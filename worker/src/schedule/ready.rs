//! URLs that may start.

use tokio::sync::OwnedSemaphorePermit;
use trawl_common::host_schedules::HostPermit;

use crate::claimed::ClaimedUrl;
use crate::claimed::FailureForProgram;
use crate::schedule::domains::UnderWay;

/// A URL that may start.
pub(crate) struct Ready {
    pub(crate) claimed: ClaimedUrl,
    pub(crate) next: Next,
}

/// The first step of a URL.
pub(crate) enum Next {
    /// It is fetched now.
    Fetch(Box<Permits>),
    /// It has no page, and its spider's program handles the failure.
    HandOver(Box<FailureForProgram>),
}

/// The permits of a URL that may be fetched now.
pub(crate) struct Permits {
    pub(crate) host_permit: HostPermit,
    /// `None` for a page of a slow domain, which has a place instead.
    pub(crate) fetch_permit: Option<OwnedSemaphorePermit>,
    pub(crate) under_way: UnderWay,
    /// Whether no other such URL starts until this one is settled.
    pub(crate) is_alone: bool,
}
