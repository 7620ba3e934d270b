//! What the servers keep a process from doing. Said once when it begins, and once when it is over.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backoff::Backoff;
use crate::ports::{Error, Result};
use tokio::time::Instant;
use tracing::{info, warn};

/// What fails now, by what is tried.
#[derive(Default)]
pub struct Health(Mutex<BTreeMap<&'static str, Trouble>>);

struct Trouble {
    since: Instant,
    error: String,
}

impl Health {
    /// Repeats `call`, which is idempotent, as long as another try may succeed.
    pub async fn patiently<T, F: Future<Output = Result<T>>>(
        &self,
        what: &'static str,
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
    pub async fn until_done<T, F: Future<Output = Result<T>>>(
        &self,
        what: &'static str,
        call: impl Fn() -> F,
    ) -> T {
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
    pub fn fails(&self, what: &'static str, error: &Error) {
        let mut troubles = self.troubles();
        match troubles.get_mut(what) {
            Some(trouble) => trouble.error = error.to_string(),
            None => {
                warn!(what, %error, "failing; trying until it works");
                troubles.insert(what, Trouble { since: Instant::now(), error: error.to_string() });
            }
        }
    }

    /// Notes that `what` succeeded.
    pub fn works(&self, what: &'static str) {
        if let Some(trouble) = self.troubles().remove(what) {
            info!(what, after = ?trouble.since.elapsed(), "works again");
        }
    }

    /// What has been failing for longest, and why; `None` if all is well.
    pub fn trouble(&self) -> Option<String> {
        let troubles = self.troubles();
        let (what, trouble) = troubles.iter().min_by_key(|(_, trouble)| trouble.since)?;
        Some(format!("{what}: {}", trouble.error))
    }

    fn troubles(&self) -> MutexGuard<'_, BTreeMap<&'static str, Trouble>> {
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
    async fn the_oldest_trouble_is_the_one_that_is_shown() {
        let health = Health::default();
        health.fails("taking messages", &Error::new(ErrorKind::Unavailable, "rabbitmq is away"));
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        health.fails("hearing messages", &Error::new(ErrorKind::Unavailable, "redis is away"));
        assert_eq!(health.trouble().as_deref(), Some("taking messages: rabbitmq is away"));
        health.works("taking messages");
        assert_eq!(health.trouble().as_deref(), Some("hearing messages: redis is away"));
    }
}
