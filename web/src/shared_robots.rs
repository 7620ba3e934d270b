//! The store of robots.txt files that all processes share (RFC 9309): one fetches a file, and the others wait for that.

use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;
use trawl_common::host_schedules::HostSchedules;
use trawl_common::politeness::gcra::HORIZON;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey, STORE_TTL};
use trawl_common::politeness::waiting::NEAR;
use trawl_common::ports::{ErrorKind, RobotsEntry};
use trawl_common::settings::Settings;

use super::robots::{NoRobots, Robots};

/// Interval at which to check whether another process has fetched a file.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Returns the stored robots.txt, or the result of `fetch`, which is then stored for all other processes. Waits while
/// the store is away. A stored file that cannot be read is fetched again.
///
/// # Errors
/// Fails as `fetch` does, and with [`NoRobots::Failed`] if the store fails permanently.
pub async fn shared_robots(
    HostSchedules { hosts, health, .. }: &HostSchedules,
    settings: &Settings,
    key: &RobotsKey,
    fetch: impl AsyncFnOnce() -> Result<Robots, NoRobots>,
) -> Result<RobotsFile, NoRobots> {
    // A fetch waits for its slot, and for its host's address, then for the answer.
    let lease = HORIZON + NEAR + settings.fetch.timeout;
    loop {
        match health.retry("looking for robots.txt", || hosts.robots(key, lease)).await {
            Ok(RobotsEntry::Known(file)) => return Ok(file),
            Ok(RobotsEntry::Awaited) => sleep(CHECK_INTERVAL).await,
            Ok(RobotsEntry::Yours) => break,
            Err(error) if error.kind == ErrorKind::Corrupt => {
                warn!(name = %key, %error, "what is kept as its robots.txt is none; asking for it anew");
                break;
            }
            Err(error) => return Err(NoRobots::Failed(error)),
        }
    }
    let fetched = fetch().await;
    let stored = match &fetched {
        Ok(robots) => {
            let ttl = if robots.is_lasting { STORE_TTL } else { settings.retry.robots_again() };
            health.retry("keeping robots.txt", || hosts.keep_robots(key, &robots.file, ttl)).await
        }
        Err(_) => health.retry("giving up robots.txt", || hosts.give_up_robots(key)).await,
    };
    stored.map_err(NoRobots::Failed)?;
    fetched.map(|robots| robots.file)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use async_trait::async_trait;
    use parking_lot::Mutex;
    use trawl_common::health::Health;
    use trawl_common::politeness::gcra::Slot;
    use trawl_common::ports::{
        BackoffRequest, Ended, Error, HostSlotRequest, Hosts, InFlightRequest, Result, SentLate,
    };
    use trawl_common::time::UnixMs;
    use trawl_common::web::host::HostKey;
    use trawl_common::web::url::CanonicalUrl;

    use super::*;

    /// A store with prepared replies, and a log of the calls.
    #[derive(Default)]
    struct Store {
        replies: Mutex<VecDeque<Result<RobotsEntry>>>,
        calls: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl Hosts for Store {
        async fn robots(&self, _key: &RobotsKey, lease: Duration) -> Result<RobotsEntry> {
            self.calls.lock().push(format!("look, lease {} s", lease.as_secs()));
            self.replies.lock().pop_front().unwrap()
        }

        async fn keep_robots(&self, _key: &RobotsKey, file: &RobotsFile, ttl: Duration) -> Result<()> {
            self.calls.lock().push(format!("keep {}, lasting: {}", file.status, ttl == STORE_TTL));
            Ok(())
        }

        async fn give_up_robots(&self, _key: &RobotsKey) -> Result<()> {
            self.calls.lock().push("give up".to_owned());
            Ok(())
        }

        async fn reserve(&self, _asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
            unreachable!("no host is asked")
        }

        async fn stay(&self, _visits: &[InFlightRequest], _lapse: Duration) -> Result<()> {
            unreachable!("no host is asked")
        }

        async fn leave(&self, _ended: &[Ended]) -> Result<()> {
            unreachable!("no host is asked")
        }

        async fn sent_late(&self, _sent: &[SentLate]) -> Result<()> {
            unreachable!("no host is asked")
        }

        async fn push_back(&self, _key: &HostKey, _refusal: &BackoffRequest) -> Result<UnixMs> {
            unreachable!("no host is asked")
        }
    }

    fn file() -> RobotsFile {
        RobotsFile { status: 200, body: "User-agent: *\nDisallow: /x\n".into(), failure: None }
    }

    /// Asks a store that replies with these, where a fetch gives `fetched`. Returns the result and the calls; `fetch` is
    /// one of them.
    async fn ask(
        replies: impl IntoIterator<Item = Result<RobotsEntry>>,
        fetched: std::result::Result<Robots, NoRobots>,
    ) -> (std::result::Result<RobotsFile, NoRobots>, Vec<String>) {
        let store =
            Arc::new(Store { replies: Mutex::new(replies.into_iter().collect()), ..Store::default() });
        let settings = Settings::default();
        let lapse = settings.fetch.timeout;
        let schedules = HostSchedules::new(store.clone(), Arc::new(Health::default()), lapse, &settings);
        let url: CanonicalUrl = "http://a.example/".parse().unwrap();
        let fetch = async || {
            store.calls.lock().push("fetch".to_owned());
            fetched
        };
        let got = shared_robots(&schedules, &settings, &RobotsKey::origin(&url.origin()), fetch).await;
        let calls = std::mem::take(&mut *store.calls.lock());
        (got, calls)
    }

    fn lasting() -> std::result::Result<Robots, NoRobots> {
        Ok(Robots { file: file(), is_lasting: true })
    }

    const LOOK: &str = "look, lease 65 s";
    const KEEP: &str = "keep 200, lasting: true";

    #[tokio::test(start_paused = true)]
    async fn a_file_that_another_process_fetches_is_waited_for() {
        let (got, calls) = ask([Ok(RobotsEntry::Awaited), Ok(RobotsEntry::Known(file()))], lasting()).await;
        assert_eq!((got, calls), (Ok(file()), [LOOK, LOOK].map(str::to_owned).into()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_of_the_store_is_waited_for_before_a_file_is_fetched() {
        let away = Err(Error::new(ErrorKind::Unavailable, "redis is away"));
        let (got, calls) = ask([away.clone(), away, Ok(RobotsEntry::Yours)], lasting()).await;
        assert_eq!((got, calls), (Ok(file()), [LOOK, LOOK, LOOK, "fetch", KEEP].map(str::to_owned).into()));
    }

    #[tokio::test]
    async fn a_stored_file_that_cannot_be_read_is_replaced() {
        let corrupt = Err(Error::new(ErrorKind::Corrupt, "no status"));
        let (got, calls) = ask([corrupt], lasting()).await;
        assert_eq!((got, calls), (Ok(file()), [LOOK, "fetch", KEEP].map(str::to_owned).into()));
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_fetched_is_left_to_other_processes() {
        let (got, calls) = ask([Ok(RobotsEntry::Yours)], Err(NoRobots::Blocked)).await;
        assert_eq!(
            (got, calls),
            (Err(NoRobots::Blocked), [LOOK, "fetch", "give up"].map(str::to_owned).into())
        );
    }

    #[tokio::test]
    async fn a_store_that_refuses_is_an_error_and_nothing_is_fetched() {
        let refused = Error::new(ErrorKind::Refused, "no permission");
        let (got, calls) = ask([Err(refused.clone())], lasting()).await;
        let failed = NoRobots::Failed(refused.during("looking for robots.txt"));
        assert_eq!((got, calls), (Err(failed), [LOOK].map(str::to_owned).into()));
    }
}
