//! Requests for sources. Each waits for a slot of its host, in the same schedules as requests for pages.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tracing::debug;
use trawl_common::frontier::outcome::{Failure, Outcome};
use trawl_common::frontier::retry::{self, Retry};
use trawl_common::host_schedules::{Decision, HostPermit, HostRequest, HostSchedules};
use trawl_common::politeness::gcra::Standing;
use trawl_common::politeness::waiting::{FIRST_LOOK, NEAR, SOON};
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::settings::{HostPolicy, Politeness};
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_web::{Fetcher, MAX_REDIRECTS, Opened, Trail};

use crate::report::Progress;
use crate::sources::download::{self, Parts, TimeLeft};
use crate::sources::read_error::ReadError;

/// The number of sources read at once, so that a slow server delays no other.
pub(crate) const MAX_READERS: usize = 8;

/// The longest time that a source counts as a request in flight to its host. A longer read may be waiting for
/// the backlog, and the backlog may be waiting for pages of this very host.
pub(crate) const MAX_IN_FLIGHT_TIME: Duration = Duration::from_secs(5);

/// Name in the health report for failures that are no host's fault: the proxy is unavailable, or this machine
/// lacks something.
const ASKING: &str = "asking for sources";

/// Delay before a source is requested again after such a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Opens sources over HTTP.
pub(crate) struct Asking {
    fetcher: Arc<Fetcher>,
    schedules: HostSchedules,
    politeness: Politeness,
    progress: Arc<Progress>,
    /// The time that the servers of one source may take. The back-offs that they ask for may add up to as
    /// much again.
    limit: Duration,
    readers: Arc<Semaphore>,
    /// Which failures are tried again, and how often.
    retry: Retry,
}

impl Asking {
    pub(crate) fn new(
        fetcher: Arc<Fetcher>,
        schedules: HostSchedules,
        politeness: Politeness,
        progress: Arc<Progress>,
        limit: Duration,
        retry: Retry,
    ) -> Self {
        let readers = Arc::new(Semaphore::new(MAX_READERS));
        Self { fetcher, schedules, politeness, progress, limit, readers, retry }
    }

    /// Waits for a permit to read one source, which is returned when dropped.
    pub(crate) async fn reader(&self) -> OwnedSemaphorePermit {
        let Ok(reader) = Arc::clone(&self.readers).acquire_owned().await else {
            unreachable!("the semaphore is never closed")
        };
        reader
    }

    /// Requests `url` and follows its redirects; each request waits for a slot of its host. A host that asks
    /// for a back-off is asked again after it; after a failure that is no host's fault, retries until the
    /// request can be sent. Other failures are retried as those of pages are, if it `retries`. Returns the response
    /// without its body, and the body; reading that fails once the servers have taken `producer.timeout`, or once the
    /// receiver of `wanted` is gone.
    pub(crate) async fn open<T: Send + 'static>(
        &self,
        url: &CanonicalUrl,
        retries: bool,
        wanted: mpsc::Sender<T>,
    ) -> Result<(Response, Parts), ReadError> {
        let mut attempts = 0;
        let mut trail = Trail::new(url.clone(), MAX_REDIRECTS);
        let mut time_left = TimeLeft::new(self.limit);
        let mut rest = self.limit;
        loop {
            let host = trail.last().host();
            let policy = self.politeness.host_policy(&host);
            let (reader, permit) = self.permits(&policy, &self.fetcher.addresses(&host).await).await?;
            match time_left.wait(self.fetcher.open(trail.last())).await {
                Ok(Opened::Redirect(target)) => {
                    permit.end(true);
                    trail.go(target).map_err(ReadError::Fetch)?;
                }
                Ok(Opened::Body(head, body)) => {
                    let head = Response { redirected_to: trail.into_target(), ..head };
                    let body = download::within(Box::pin(body), time_left, wanted).boxed();
                    return Ok((head, holding(body, reader, permit)));
                }
                Err(failure) if failure.is_refusal() => {
                    let pushed =
                        self.schedules.push_back(&policy.key, &self.politeness, &failure, None).await;
                    let until = pushed.map_err(ReadError::Port)?;
                    let left = rest.checked_sub(until.wait_from(UnixMs::now()));
                    rest = left.ok_or(ReadError::Fetch(failure))?;
                }
                Err(failure) if failure.class.is_blameless() => {
                    permit.end(false);
                    drop(reader);
                    let error = Error::new(ErrorKind::Unavailable, &failure.detail);
                    self.schedules.health.report_recent_failure(ASKING, &error, RETRY_DELAY * 4);
                    sleep_while_wanted(RETRY_DELAY, &wanted).await?;
                }
                Err(failure) => {
                    permit.end(failure.status.is_some_and(|status| status < 500));
                    drop(reader);
                    if !retries || time_left.is_over() {
                        return Err(ReadError::Fetch(failure));
                    }
                    attempts += 1;
                    let wait = self.retry_delay(url, failure, attempts)?;
                    let _waiting = self.progress.waits_for(&policy.key, wait);
                    sleep_while_wanted(wait, &wanted).await?;
                }
            }
        }
    }

    /// Returns the time until a source is requested again whose attempt number `attempts` ended in `failure`; fails if
    /// that is final.
    fn retry_delay(
        &self,
        url: &CanonicalUrl,
        failure: Failure,
        attempts: u32,
    ) -> Result<Duration, ReadError> {
        match retry::decide(&self.retry, failure, attempts, UnixMs::now(), 1.0) {
            Outcome::Retry { failure, until, .. } => {
                debug!(%url, %failure, %until, "a source is asked for again");
                Ok(until.wait_from(UnixMs::now()))
            }
            Outcome::Failed(failure, _) => Err(ReadError::Fetch(failure)),
            _ => unreachable!("a failure is retried or final"),
        }
    }

    /// Waits for a permit of the host and one to read the response. While it waits for the host, another
    /// source may be read.
    ///
    /// The request stays off the host's waitlist, which is as long as the crawl: otherwise all pages of the
    /// first sitemap would be fetched before the second sitemap.
    async fn permits(
        &self,
        policy: &HostPolicy,
        addresses: &[IpAddr],
    ) -> Result<(OwnedSemaphorePermit, HostPermit), ReadError> {
        let mut request = HostRequest { standing: Standing::Aside, ..HostRequest::new(policy) };
        loop {
            let reader = self.reader().await;
            let decision = self.schedules.ask(&mut request, addresses, NEAR).await;
            let wait = match decision.map_err(ReadError::Port)? {
                Decision::Go(permit) => {
                    permit.wait_to_send().await;
                    return Ok((reader, permit));
                }
                Decision::At { wait, .. } => wait,
                // An operator may lift a back-off.
                Decision::Later { wait, .. } | Decision::Crowded { wait } => wait.clamp(SOON, FIRST_LOOK),
                Decision::Blocked => return Err(ReadError::Blocked(policy.key.clone())),
                Decision::TooLate => unreachable!("it has no deadline"),
            };
            drop(reader);
            let _waiting = self.progress.waits_for(&policy.key, wait);
            sleep(wait).await;
        }
    }
}

/// Sleeps; fails with [`ReadError::Stopped`] once the receiver of `wanted` is gone.
async fn sleep_while_wanted<T>(time: Duration, wanted: &mpsc::Sender<T>) -> Result<(), ReadError> {
    tokio::select! {
        () = sleep(time) => Ok(()),
        () = wanted.closed() => Err(ReadError::Stopped),
    }
}

/// Returns `body` holding both permits until it ends; the host's permit for [`MAX_IN_FLIGHT_TIME`] at
/// most.
fn holding(body: Parts, reader: impl Send + 'static, permit: HostPermit) -> Parts {
    let (open, ended) = oneshot::channel::<()>();
    tokio::spawn(async move {
        // The sender never sends; it is dropped with the body.
        let _ = timeout(MAX_IN_FLIGHT_TIME, ended).await;
        permit.end(true);
    });
    let parts = stream::unfold((body, reader, open), |(mut body, reader, open)| async {
        Some((body.next().await?, (body, reader, open)))
    });
    parts.fuse().boxed()
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use trawl_common::host_schedules::InFlight;
    use trawl_common::politeness::gcra::{Pace, SlotRequest};
    use trawl_common::web::host::HostKey;

    use super::*;

    /// Returns a table of requests in flight with one entry, and an endless body that holds it.
    fn held() -> (Arc<InFlight>, Parts) {
        let in_flight = Arc::<InFlight>::default();
        let pace = Pace { concurrency: 1, ..Pace::UNLIMITED };
        let (standing, lapse) = (Standing::Aside, Duration::from_secs(60));
        let request = SlotRequest { pace, held: None, standing, deadline: None, token: 7, lapse };
        let permit = HostPermit::new(&in_flight, HostKey::from_text("a.example"), &request, Instant::now());
        (Arc::clone(&in_flight), holding(stream::pending().boxed(), (), permit))
    }

    fn taken(in_flight: &InFlight) -> usize {
        in_flight.older_than(Duration::ZERO).len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_waits_for_its_reader_counts_as_in_flight_for_a_while_only() {
        let (in_flight, _body) = held();
        sleep(MAX_IN_FLIGHT_TIME / 2).await;
        assert_eq!(taken(&in_flight), 1);
        sleep(MAX_IN_FLIGHT_TIME).await;
        assert_eq!(taken(&in_flight), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_over_no_longer_counts_as_in_flight() {
        let (in_flight, body) = held();
        drop(body);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(taken(&in_flight), 0);
    }
}
