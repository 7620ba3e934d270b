//! Which URLs were asked for lately in a crawl of hand-published URLs. After a restart they may be asked for again.

use moka::sync::Cache;
use trawl_common::settings::Adhoc;
use trawl_common::web::url::Fingerprint;

use super::records::Address;

/// The addresses of the URLs that were asked for, or fetched, a moment ago.
pub(super) struct Requests(Cache<Fingerprint, ()>);

impl Default for Requests {
    fn default() -> Self {
        Self(Cache::builder().time_to_live(Adhoc::default().again).build())
    }
}

impl Requests {
    /// Whether the URL was asked for lately.
    pub(super) fn has(&self, address: &Address) -> bool {
        self.0.contains_key(&address.url)
    }

    /// Notes that the URL has ended, or stands behind one that has, if its crawl is one of requests.
    pub(super) fn note_in_adhoc(&self, address: &Address) {
        if address.crawl.is_adhoc() {
            self.note(address);
        }
    }

    /// Notes that the URL was asked for just now.
    pub(super) fn note(&self, address: &Address) {
        self.0.insert(address.url, ());
    }
}
