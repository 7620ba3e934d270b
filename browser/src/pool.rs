//! The browsers of a process, and the places in them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use trawl_common::settings::Settings;
use trawl_handlers::Supervisor;

use crate::browser::{Browser, Launcher};
use crate::counts::{Counted, Counts};

/// Delay before rendering is tried again when no browser starts.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The longest text of a message around a page: JSON may need six bytes for one of the page.
const ESCAPED: u64 = 6;
const AROUND: u64 = 1_000_000;

/// Starts browsers as they are needed, and replaces them.
pub struct Pool {
    launcher: Launcher,
    places: Arc<Semaphore>,
    browsers: Mutex<Vec<Arc<Browser>>>,
}

/// A place for one page in a browser.
pub struct Lease {
    browser: Arc<Browser>,
    counts: Arc<Counts>,
    _place: (OwnedSemaphorePermit, Counted),
}

/// The reason why no page is rendered now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NoLease {
    /// The reason in words.
    pub why: String,
    /// The time after which to try again.
    pub after: Duration,
}

impl Pool {
    /// Creates a pool whose browsers trust certificates for the key with the hash `spki` alone. No browser is started
    /// before a page needs it.
    pub fn new(settings: &Settings, spki: String, supervisor: Supervisor) -> Self {
        let places = usize::from(settings.browser.max) * usize::from(settings.browser.contexts);
        let max_message = settings.fetch.max_body.as_u64().saturating_mul(ESCAPED).saturating_add(AROUND);
        let launcher = Launcher {
            settings: settings.browser.clone(),
            spki,
            supervisor,
            max_message: max_message.try_into().unwrap_or(usize::MAX),
            deaths: Arc::default(),
            counts: Arc::default(),
        };
        Self { launcher, places: Arc::new(Semaphore::new(places)), browsers: Mutex::default() }
    }

    /// Returns the numbers of its browsers and pages.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.launcher.counts
    }

    /// Waits for a place, in a browser that is started if there is none.
    ///
    /// # Errors
    /// Fails if no browser starts, or several have died of late.
    pub async fn lease(&self) -> Result<Lease, NoLease> {
        let counts = &self.launcher.counts;
        let _waiting = counts.waiting();
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.unwrap_or_else(|_| unreachable!("it is never closed"));
        if let Some(after) = self.launcher.deaths.pause() {
            let why =
                "several browsers have died within a minute: nothing is rendered for another".to_owned();
            return Err(NoLease { why, after });
        }
        // Held while one is started, so that others that have no place wait for that.
        let mut browsers = self.browsers.lock().await;
        browsers.retain(|browser| !browser.is_done());
        let most = self.launcher.settings.contexts.into();
        let browser = match browsers.iter().find(|browser| browser.has_place(most)) {
            Some(browser) => Arc::clone(browser),
            None => {
                let started = self.launcher.start().await;
                let browser = Arc::new(started.map_err(|why| NoLease { why, after: RETRY_DELAY })?);
                browsers.push(Arc::clone(&browser));
                browser
            }
        };
        browser.enter();
        Ok(Lease { browser, counts: Arc::clone(counts), _place: (place, counts.page()) })
    }
}

impl Lease {
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
