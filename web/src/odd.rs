//! The origins whose last answer only browsers read.

use std::time::Duration;

use moka::sync::Cache;
use trawl_common::frontier::outcome::Failure;
use url::Url;

use super::body::Unread;

/// Maximum number of origins that are known to answer oddly, and the time until one is tried as others are.
const MAX_ORIGINS: u64 = 4096;
const TTL: Duration = Duration::from_secs(60 * 60);

/// The origins that answer oddly: they are asked by [`lenient`](super::lenient) at once.
#[derive(Clone, Debug)]
pub(super) struct OddOrigins(Cache<String, ()>);

/// One origin, which may be among them.
pub(super) struct Origin {
    odd: OddOrigins,
    name: String,
}

impl OddOrigins {
    pub(super) fn new() -> Self {
        Self(Cache::builder().max_capacity(MAX_ORIGINS).time_to_live(TTL).build())
    }

    /// Returns the origin of a URL.
    pub(super) fn origin(&self, url: &Url) -> Origin {
        Origin { odd: self.clone(), name: url.origin().ascii_serialization() }
    }
}

impl Origin {
    /// Whether its last answer was odd.
    pub(super) fn is_odd(&self) -> bool {
        self.odd.0.contains_key(&self.name)
    }

    /// Remembers whether its last answer was odd.
    pub(super) fn note(&self, is_odd: bool) {
        match is_odd {
            // It may be mended: a use does not prolong the time.
            true if self.is_odd() => {}
            true => self.odd.0.insert(self.name.clone(), ()),
            false => self.odd.0.invalidate(&self.name),
        }
    }

    /// Returns the failure of a body. If it is one that may be read by [`lenient`](super::lenient), the origin is odd
    /// from now on.
    pub(super) fn learn(&self, unread: Unread) -> Failure {
        if unread.is_malformed {
            self.odd.0.insert(self.name.clone(), ());
        }
        unread.failure
    }
}
