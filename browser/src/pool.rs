//! The browsers of a process, and the places in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use trawl_common::settings::Settings;
use trawl_handlers::Supervisor;

use crate::browser::{Browser, Launcher};
use crate::counts::Counts;
use crate::deaths::Deaths;
use crate::lease::Lease;
use crate::self_test;

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
    /// Whether a browser has passed the self-test.
    is_tested: AtomicBool,
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
        let (browsers, is_tested) = Default::default();
        Self { launcher, places: Arc::new(Semaphore::new(places)), browsers, is_tested }
    }

    /// Returns the numbers of its browsers and pages.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.launcher.counts
    }

    /// Waits for a place, in a browser that is started if there is none.
    ///
    /// # Errors
    /// Fails if no browser starts, it fails the self-test, or several have died of late.
    pub async fn lease(&self) -> Result<Lease, NoLease> {
        let counts = &self.launcher.counts;
        let _waiting = counts.waiting();
        let place = self.places(1).await?;
        // Held while one is started, so that others that have no place wait for that.
        let mut browsers = self.browsers.lock().await;
        browsers.retain(|browser| !browser.is_done());
        let most = self.launcher.settings.contexts.into();
        let browser = match browsers.iter().find(|browser| browser.has_place(most)) {
            Some(browser) => Arc::clone(browser),
            None => {
                let started = self.start(&self.launcher.deaths).await;
                let browser = started.map_err(|why| NoLease { why, after: RETRY_DELAY })?;
                browsers.push(Arc::clone(&browser));
                browser
            }
        };
        Ok(Lease::new(browser, place, counts))
    }

    /// Waits for a browser that renders one page alone, which may be why others died. Its death does not count as theirs
    /// do.
    ///
    /// # Errors
    /// Fails as [`lease`](Self::lease) does.
    pub async fn lease_alone(&self) -> Result<Lease, NoLease> {
        let counts = &self.launcher.counts;
        let _waiting = counts.waiting();
        let places = self.places(self.launcher.settings.contexts.into()).await?;
        // Idle ones make room for it.
        self.browsers.lock().await.retain(|browser| browser.is_used());
        let started = self.start(&Arc::default()).await;
        Ok(Lease::new(started.map_err(|why| NoLease { why, after: RETRY_DELAY })?, places, counts))
    }

    /// Waits for so many places, unless nothing is rendered now.
    async fn places(&self, number: u32) -> Result<OwnedSemaphorePermit, NoLease> {
        let places = Arc::clone(&self.places).acquire_many_owned(number).await;
        let places = places.unwrap_or_else(|_| unreachable!("it is never closed"));
        match self.launcher.deaths.pause() {
            Some((after, why)) => Err(NoLease {
                why: format!(
                    "several browsers have failed within a minute, nothing is rendered for another: {why}"
                ),
                after,
            }),
            None => Ok(places),
        }
    }

    /// Starts a browser whose death is to be among these. The first has to pass the self-test.
    async fn start(&self, deaths: &Arc<Deaths>) -> Result<Arc<Browser>, String> {
        let browser = Arc::new(self.launcher.start(deaths).await?);
        if !self.is_tested.load(Ordering::Relaxed) {
            self_test::run(&browser).await.inspect_err(|why| self.launcher.deaths.note(why))?;
            self.is_tested.store(true, Ordering::Relaxed);
        }
        Ok(browser)
    }
}

/// Starts a browser, and has it pass the self-test.
///
/// # Errors
/// Returns the reason why no page can be rendered here.
pub async fn examine(settings: &Settings) -> Result<(), String> {
    let pool = Pool::new(settings, String::new(), Supervisor::default());
    pool.start(&pool.launcher.deaths).await.map(drop)
}
