//! Problems that keep a process from working, such as an outage of a server. Each is logged once when it begins, and
//! once when it is over.
//!
//! The process waits for an outage to end, however long it takes. An error that does not go away by waiting ends the
//! process.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::SetOnce;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Error, Fatal, Result};
use crate::backoff::Backoff;
use crate::logs::LogLevel;
use crate::names::SpiderName;
use crate::text::printable;

/// Writes a message to a log.
type Log = dyn Fn(LogLevel, String) + Send + Sync;

/// The current problems, by the name of the failing operation.
#[derive(Default)]
pub struct Health {
    troubles: Mutex<BTreeMap<String, Trouble>>,
    /// Once cancelled, failed calls are not retried.
    stop: CancellationToken,
    /// The first error that does not go away by waiting.
    fatal: SetOnce<Error>,
    /// Writes problems to the fleet's log as well.
    log: OnceLock<Box<Log>>,
}

struct Trouble {
    since: Instant,
    error: String,
    is_over: bool,
    /// The time after which it counts as over, unless it is reported as over before.
    lapses: Option<Instant>,
    /// Whether its beginning was logged, so that its end is, too.
    is_logged: bool,
    /// When a beginning was last logged.
    logged_at: Option<Instant>,
}

impl Trouble {
    fn over(now: Instant) -> Self {
        Self {
            since: now,
            error: String::new(),
            is_over: true,
            lapses: None,
            is_logged: false,
            logged_at: None,
        }
    }

    /// Marks it as over. Returns its duration, if that is news.
    fn end(&mut self) -> Option<Duration> {
        let was_logged = !std::mem::replace(&mut self.is_over, true) && self.is_logged;
        was_logged.then(|| self.since.elapsed())
    }
}

/// Returns the name of an operation that concerns one spider alone, such as storing its items.
pub fn of_spider(spider: &SpiderName, what: &str) -> String {
    format!("spider {spider}: {what}")
}

/// Returns the spider that a problem concerns, if it is one alone.
pub fn spider_of(trouble: &str) -> Option<SpiderName> {
    trouble.strip_prefix("spider ")?.split_once(": ")?.0.parse().ok()
}

/// Maximum number of spiders whose problems are reported at a time.
const MAX_SPIDERS: usize = 100;

/// Maximum length of such a problem, in bytes.
const MAX_TROUBLE_BYTES: usize = 500;

/// Minimum interval between two messages about an intermittent problem.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

impl Health {
    /// Creates the health of a process whose calls give up as soon as `stop` is cancelled.
    pub fn until(stop: CancellationToken) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Creates a health that returns errors at once instead of retrying.
    pub fn fail_fast() -> Self {
        let stop = CancellationToken::new();
        stop.cancel();
        Self::until(stop)
    }

    /// Also writes problems with `log`, which returns at once, from now on.
    pub fn log_to(&self, log: impl Fn(LogLevel, String) + Send + Sync + 'static) {
        // The first call wins.
        let _ = self.log.set(Box::new(log));
    }

    /// Repeats `call`, which is idempotent, while a server is away or full, and the process is not to stop. An error
    /// that is returned names `what`.
    pub async fn retry<T, F: Future<Output = Result<T>>>(
        &self,
        what: &str,
        call: impl Fn() -> F,
    ) -> Result<T> {
        self.retry_if(what, Error::is_temporary, call).await
    }

    /// Like [`retry`](Self::retry), where every other error ends the process.
    pub async fn insist<T, F: Future<Output = Result<T>>>(
        &self,
        what: &str,
        call: impl Fn() -> F,
    ) -> std::result::Result<T, Fatal> {
        self.retry(what, call).await.map_err(Fatal)
    }

    /// Like [`retry`](Self::retry), but repeats `call` while `may_pass` holds of its error.
    pub async fn retry_if<T, F: Future<Output = Result<T>>>(
        &self,
        what: &str,
        may_pass: impl Fn(&Error) -> bool,
        call: impl Fn() -> F,
    ) -> Result<T> {
        let mut backoff = Backoff::default();
        loop {
            let error = match call().await {
                Err(error) if may_pass(&error) => error,
                result => {
                    self.report_ok(what);
                    return result.map_err(|error| error.during(what));
                }
            };
            if self.stop.is_cancelled() {
                return Err(error.during(what));
            }
            self.report_failure(what, &error);
            if self.stop.run_until_cancelled(backoff.pause()).await.is_none() {
                return Err(error.during(what));
            }
        }
    }

    /// Ends the process with this error, unless another has ended it already.
    pub fn abort(&self, error: impl Into<Error>) {
        let _ = self.fatal.set(error.into());
    }

    /// Waits for the error that ends the process.
    pub async fn fatal(&self) -> Error {
        self.fatal.wait().await.clone()
    }

    /// Records that `what` failed.
    pub fn report_failure(&self, what: &str, error: &Error) {
        self.note(what, error, None);
    }

    /// Records that `what` failed just now. The problem counts as over after `lapses_after` unless it is reported
    /// again.
    pub fn report_recent_failure(&self, what: &str, error: &Error, lapses_after: Duration) {
        self.note(what, error, Some(Instant::now() + lapses_after));
    }

    fn note(&self, what: &str, error: &Error, lapses: Option<Instant>) {
        let now = Instant::now();
        let mut troubles = self.troubles.lock();
        let trouble = troubles.entry(what.to_owned()).or_insert_with(|| Trouble::over(now));
        trouble.error = error.to_string();
        trouble.lapses = lapses;
        if !trouble.is_over {
            return;
        }
        trouble.is_over = false;
        trouble.since = now;
        trouble.is_logged = trouble.logged_at.is_none_or(|logged_at| now - logged_at >= LOG_INTERVAL);
        if trouble.is_logged {
            trouble.logged_at = Some(now);
            warn!(what, %error, "failing; trying until it works");
            self.log(LogLevel::Warn, || format!("{what} fails, and is tried until it works: {error}"));
        }
    }

    fn report_end(&self, what: &str, trouble: &mut Trouble) {
        if let Some(after) = trouble.end() {
            info!(what, ?after, "works again");
            self.log(LogLevel::Info, || format!("{what} works again, after {} s", after.as_secs()));
        }
    }

    fn log(&self, level: LogLevel, text: impl FnOnce() -> String) {
        if let Some(log) = self.log.get() {
            log(level, text());
        }
    }

    /// Records that `what` succeeded.
    pub fn report_ok(&self, what: &str) {
        let mut troubles = self.troubles.lock();
        if let Some(trouble) = troubles.get_mut(what) {
            self.report_end(what, trouble);
        }
    }

    /// Returns the oldest current problem and its error; `None` if all is well.
    pub fn trouble(&self) -> Option<String> {
        self.current().into_iter().next()
    }

    /// Returns the oldest current problem and its error of each spider that has one of its own.
    pub fn spider_troubles(&self) -> BTreeMap<SpiderName, String> {
        let mut all = BTreeMap::new();
        for trouble in self.current() {
            if let Some(spider) = spider_of(&trouble).filter(|_| all.len() < MAX_SPIDERS) {
                all.entry(spider).or_insert_with(|| printable(&trouble, MAX_TROUBLE_BYTES));
            }
        }
        all
    }

    /// Returns the current problems and their errors, the oldest first.
    fn current(&self) -> Vec<String> {
        let mut troubles = self.troubles.lock();
        for (what, trouble) in &mut *troubles {
            if trouble.lapses.is_some_and(|lapses| lapses <= Instant::now()) {
                self.report_end(what, trouble);
            }
        }
        let mut now: Vec<_> = troubles.iter().filter(|(_, trouble)| !trouble.is_over).collect();
        now.sort_by_key(|(_, trouble)| trouble.since);
        now.into_iter().map(|(what, trouble)| format!("{what}: {}", trouble.error)).collect()
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
        let done = health.insist("finishing", || async {
            match calls.fetch_add(1, Ordering::Relaxed) {
                4 => Ok(()),
                _ => Err(away()),
            }
        });
        assert_eq!(done.await, Ok(()));
        assert_eq!((calls.load(Ordering::Relaxed), health.trouble()), (5, None));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_no_waiting_mends_is_fatal_at_once_and_is_named() {
        for kind in [ErrorKind::Refused, ErrorKind::Corrupt, ErrorKind::Stale, ErrorKind::Busy] {
            let health = Health::default();
            let calls = AtomicU32::new(0);
            let refused = || async {
                calls.fetch_add(1, Ordering::Relaxed);
                Result::<()>::Err(Error::new(kind, "no permission"))
            };
            let Fatal(error) = health.insist("finishing", refused).await.unwrap_err();
            assert_eq!((error.kind, calls.load(Ordering::Relaxed), health.trouble()), (kind, 1, None));
            assert_eq!(error.to_string(), "finishing: no permission");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_fatal_error_ends_the_process() {
        let health = Health::default();
        let error = |text: &str| Error::new(ErrorKind::Refused, text);
        health.abort(Fatal(error("no permission")));
        health.abort(error("no such queue"));
        assert_eq!(health.fatal().await, error("no permission"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_store_may_be_an_error_at_once_where_an_outage_is_waited_for() {
        let health = Health::default();
        let calls = AtomicU32::new(0);
        let full_after_an_outage = || async {
            match calls.fetch_add(1, Ordering::Relaxed) {
                0..4 => Result::<()>::Err(Error::new(ErrorKind::Unavailable, "redis is away")),
                _ => Err(Error::full()),
            }
        };
        let is_away = |error: &Error| error.kind == ErrorKind::Unavailable;
        let error = health.retry_if("remembering pages", is_away, full_after_an_outage).await.unwrap_err();
        assert_eq!((error.kind, calls.load(Ordering::Relaxed)), (ErrorKind::Full, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn what_people_set_right_is_waited_for_whatever_the_error() {
        let health = Health::default();
        let calls = AtomicU32::new(0);
        let shop: SpiderName = "shop".parse().unwrap();
        let what = of_spider(&shop, "postgres");
        let refused = || async {
            if calls.load(Ordering::Relaxed) > 0 {
                assert_eq!(spider_of(&health.trouble().unwrap()), Some(shop.clone()));
            }
            match calls.fetch_add(1, Ordering::Relaxed) {
                4 => Ok(()),
                _ => Err(Error::new(ErrorKind::Refused, "there is no such column")),
            }
        };
        assert_eq!(health.retry_if(&what, |_| true, refused).await, Ok(()));
        assert_eq!((calls.load(Ordering::Relaxed), health.trouble()), (5, None));
        assert_eq!(spider_of("finishing: redis is full"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_given_up_at_once_when_the_process_is_to_stop() {
        let stop = CancellationToken::new();
        let health = Health::until(stop.clone());
        let full = || async { Result::<()>::Err(Error::new(ErrorKind::Full, "redis is full")) };
        let begun = Instant::now();
        let (given_up, ()) = tokio::join!(health.retry("admitting", full), async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            stop.cancel();
        });
        let error = given_up.unwrap_err();
        assert_eq!((error.kind, &*error.to_string()), (ErrorKind::Full, "admitting: redis is full"));
        assert_eq!(begun.elapsed(), Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_trouble_that_comes_and_goes_is_logged_once_in_a_while() {
        let health = Health::default();
        let full = Error::new(ErrorKind::Unavailable, "the disk is full");
        let mut logged = 0;
        for _ in 0..120 {
            health.report_failure("finishing", &full);
            logged += u32::from(health.troubles.lock()["finishing"].is_logged);
            assert!(health.trouble().is_some());
            health.report_ok("finishing");
            assert_eq!(health.trouble(), None);
            tokio::time::advance(Duration::from_millis(500)).await;
        }
        assert_eq!(logged, 2, "in a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_lately_counts_as_over_after_a_while() {
        let health = Health::default();
        health.report_recent_failure("claiming", &Error::full(), Duration::from_secs(20));
        tokio::time::advance(Duration::from_secs(19)).await;
        assert!(health.trouble().is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(health.trouble(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn each_spider_has_its_own_trouble_whichever_is_the_oldest() {
        let health = Health::default();
        let [shop, news]: [SpiderName; 2] = ["shop", "news"].map(|name| name.parse().unwrap());
        let away = Error::new(ErrorKind::Unavailable, "connection refused");
        for spider in [&shop, &news] {
            health.report_failure(&of_spider(spider, "postgres"), &away);
        }
        health.report_failure("claiming URLs", &Error::new(ErrorKind::Unavailable, "redis is away"));
        let text = |spider| format!("spider {spider}: postgres: connection refused");
        let both = [(shop.clone(), text("shop")), (news.clone(), text("news"))].into();
        assert_eq!(health.spider_troubles(), both);
        health.report_ok(&of_spider(&shop, "postgres"));
        assert_eq!(health.spider_troubles(), [(news, text("news"))].into());
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_trouble_is_the_one_that_is_shown() {
        let health = Health::default();
        health.report_failure("taking messages", &Error::new(ErrorKind::Unavailable, "rabbitmq is away"));
        tokio::time::advance(Duration::from_secs(1)).await;
        health.report_failure("claiming URLs", &Error::new(ErrorKind::Unavailable, "redis is away"));
        assert_eq!(health.trouble().as_deref(), Some("taking messages: rabbitmq is away"));
        health.report_ok("taking messages");
        assert_eq!(health.trouble().as_deref(), Some("claiming URLs: redis is away"));
    }
}
