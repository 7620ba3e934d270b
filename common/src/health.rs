//! What the servers keep a process from doing. Said once when it begins, and once when it is over.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::backoff::Backoff;
use crate::ports::{Error, Result};

/// What fails now, by what is tried.
#[derive(Default)]
pub struct Health(Mutex<BTreeMap<String, Trouble>>);

struct Trouble {
    since: Instant,
    error: String,
    is_over: bool,
    /// Whether its beginning was said, so that its end is.
    is_told: bool,
    /// When a beginning was last said.
    told: Option<Instant>,
}

impl Trouble {
    fn over(now: Instant) -> Self {
        Self { since: now, error: String::new(), is_over: true, is_told: false, told: None }
    }
}

/// What comes and goes is said no more often than this.
const QUIET: Duration = Duration::from_secs(30);

impl Health {
    /// Repeats `call`, which is idempotent, as long as another try may succeed.
    pub async fn patiently<T, F: Future<Output = Result<T>>>(
        &self,
        what: &str,
        call: impl Fn() -> F,
    ) -> Result<T> {
        let mut backoff = Backoff::default();
        loop {
            match call().await {
                Err(error) if error.is_temporary() => self.fails(what, &error),
                result => {
                    self.works(what);
                    return result;
                }
            }
            backoff.pause().await;
        }
    }

    /// Repeats `call`, which is idempotent, until it succeeds.
    pub async fn until_done<T, F: Future<Output = Result<T>>>(&self, what: &str, call: impl Fn() -> F) -> T {
        let mut backoff = Backoff::default();
        loop {
            match call().await {
                Ok(value) => {
                    self.works(what);
                    return value;
                }
                Err(error) => self.fails(what, &error),
            }
            backoff.pause().await;
        }
    }

    /// Notes that `what` failed.
    pub fn fails(&self, what: &str, error: &Error) {
        let now = Instant::now();
        let mut troubles = self.troubles();
        let trouble = troubles.entry(what.to_owned()).or_insert_with(|| Trouble::over(now));
        trouble.error = error.to_string();
        if !trouble.is_over {
            return;
        }
        trouble.is_over = false;
        trouble.since = now;
        trouble.is_told = trouble.told.is_none_or(|told| now - told >= QUIET);
        if trouble.is_told {
            trouble.told = Some(now);
            warn!(what, %error, "failing; trying until it works");
        }
    }

    /// Notes that `what` succeeded.
    pub fn works(&self, what: &str) {
        let mut troubles = self.troubles();
        let Some(trouble) = troubles.get_mut(what).filter(|trouble| !trouble.is_over) else { return };
        trouble.is_over = true;
        if trouble.is_told {
            info!(what, after = ?trouble.since.elapsed(), "works again");
        }
    }

    /// What has been failing for longest, and why; `None` if all is well.
    pub fn trouble(&self) -> Option<String> {
        let troubles = self.troubles();
        let now = troubles.iter().filter(|(_, trouble)| !trouble.is_over);
        let (what, trouble) = now.min_by_key(|(_, trouble)| trouble.since)?;
        Some(format!("{what}: {}", trouble.error))
    }

    fn troubles(&self) -> MutexGuard<'_, BTreeMap<String, Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::ports::ErrorKind;

    #[tokio::test(start_paused = true)]
    async fn a_call_is_repeated_until_it_succeeds_and_its_trouble_is_forgotten_then() {
        let health = Health::default();
        let calls = AtomicU32::new(0);
        let away = || Error::new(ErrorKind::Unavailable, "redis is away");
        let done = health.until_done("finishing", || async {
            match calls.fetch_add(1, Ordering::Relaxed) {
                4 => Ok(()),
                _ => Err(away()),
            }
        });
        done.await;
        assert_eq!((calls.load(Ordering::Relaxed), health.trouble()), (5, None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_and_goes_is_said_once_in_a_while() {
        let health = Health::default();
        let full = Error::new(ErrorKind::Unavailable, "the disk is full");
        let mut said = 0;
        for _ in 0..120 {
            health.fails("finishing", &full);
            said += u32::from(health.troubles()["finishing"].is_told);
            assert!(health.trouble().is_some());
            health.works("finishing");
            assert_eq!(health.trouble(), None);
            tokio::time::advance(Duration::from_millis(500)).await;
        }
        assert_eq!(said, 2, "in a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_trouble_is_the_one_that_is_shown() {
        let health = Health::default();
        health.fails("taking messages", &Error::new(ErrorKind::Unavailable, "rabbitmq is away"));
        tokio::time::advance(Duration::from_secs(1)).await;
        health.fails("hearing messages", &Error::new(ErrorKind::Unavailable, "redis is away"));
        assert_eq!(health.trouble().as_deref(), Some("taking messages: rabbitmq is away"));
        health.works("taking messages");
        assert_eq!(health.trouble().as_deref(), Some("hearing messages: redis is away"));
    }
}
