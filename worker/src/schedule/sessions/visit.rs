//! One request of a session.

use std::sync::Arc;

use trawl_common::time::UnixMs;
use trawl_common::web::cookies::SetCookie;
use trawl_common::web::url::CanonicalUrl;

use super::entry::{Change, Entry};
use crate::spiders::LoadedSpider;

/// A page that is fetched in a session.
#[derive(Clone)]
pub(crate) struct Visit {
    pub(super) entry: Arc<Entry>,
    pub(super) spider: Arc<LoadedSpider>,
    /// The number of the log-in with which it is fetched.
    pub(super) logins: u64,
}

/// Shows whose session it is.
impl std::fmt::Debug for Visit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visit")
            .field("session", &self.entry.id)
            .field("logins", &self.logins)
            .finish_non_exhaustive()
    }
}

impl Visit {
    /// Notes that the page was fetched well, so the log-in has succeeded.
    pub(crate) fn prove(&self) {
        self.entry.inner.lock().change(Change::Proof(self.logins), UnixMs::now());
    }
}

impl trawl_web::Session for Visit {
    fn cookies(&self, url: &CanonicalUrl) -> Option<String> {
        self.entry.inner.lock().state.as_ref()?.cookies.field(url, UnixMs::now())
    }

    fn fields(&self, url: &CanonicalUrl) -> Vec<(String, String)> {
        let inner = self.entry.inner.lock();
        match (&self.spider.session, &inner.state) {
            (Some(session), Some(state)) => session.fields(url, &state.values),
            _ => Vec::new(),
        }
    }

    fn set_cookies(&self, url: &CanonicalUrl, values: &[String]) {
        let now = UnixMs::now();
        let mut inner = self.entry.inner.lock();
        for set in values.iter().filter_map(|value| SetCookie::parse(url, value, now)) {
            inner.change(Change::Cookie(self.logins, set), now);
        }
    }
}
