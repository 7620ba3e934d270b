//! Which URLs were asked for lately in a crawl of hand-published URLs. After a restart they may be asked for again.

use moka::sync::Cache;
use trawl_common::frontier::UrlState;
use trawl_common::settings::Adhoc;
use trawl_common::time::UnixMs;
use trawl_common::web::url::Fingerprint;

use super::records::Address;

/// When URLs were asked for, or fetched, that may not be asked for again yet.
pub(super) struct Requests(Cache<Fingerprint, UnixMs>);

impl Default for Requests {
    fn default() -> Self {
        Self(Cache::builder().time_to_live(Adhoc::default().again).build())
    }
}

impl Requests {
    /// How the URL, which has no record, stands to a request for it.
    pub(super) fn state(&self, address: &Address) -> UrlState {
        UrlState::requested(self.0.get(&address.url), Adhoc::default().again, UnixMs::now())
    }

    /// Notes that the URL has ended, or stands behind one that has, if its crawl is one of requests.
    pub(super) fn note_in_adhoc(&self, address: &Address) {
        if address.crawl.is_adhoc() {
            self.note(address);
        }
    }

    /// Notes that the URL was asked for just now.
    pub(super) fn note(&self, address: &Address) {
        self.0.insert(address.url, UnixMs::now());
    }
}
