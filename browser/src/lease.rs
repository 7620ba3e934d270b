//! A place for one page in a browser.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use crate::browser::Browser;
use crate::counts::{Counted, Counts};

/// A place for one page in a browser.
pub struct Lease {
    browser: Arc<Browser>,
    counts: Arc<Counts>,
    _place: (OwnedSemaphorePermit, Counted),
}

impl Lease {
    pub(crate) fn new(browser: Arc<Browser>, permit: OwnedSemaphorePermit, counts: &Arc<Counts>) -> Self {
        browser.enter();
        Self { browser, counts: Arc::clone(counts), _place: (permit, counts.page()) }
    }

    pub(crate) fn browser(&self) -> &Arc<Browser> {
        &self.browser
    }

    /// Counts its page as rendered.
    pub(crate) fn count_rendered(&self) {
        self.counts.add_rendered();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.browser.leave();
    }
}
