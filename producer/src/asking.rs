//! Asking for sources: each request in the turn of its host, by the schedules that pages are asked by.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use trawl_common::gcra::Standing;
use trawl_common::ports::Response;
use trawl_common::settings::{Manners, Politeness};
use trawl_common::ticket::Ticket;
use trawl_common::time::UnixMs;
use trawl_common::turns::{Turn, Turns};
use trawl_common::url::CanonicalUrl;
use trawl_common::waiting::{FIRST_LOOK, SOON};
use trawl_web::{Fetcher, MAX_REDIRECTS, Opened, Trail};

use crate::download::{self, Parts, Patience};
use crate::read::ReadError;
use crate::report::Progress;

/// So many sources are read side by side: one whose server is slow holds up no other.
const READERS: usize = 8;

/// So long a source keeps its place among the requests under way to its host. What is not at its end by then may wait for the
/// backlog, and that waits for pages of this very host.
pub(crate) const PLACE_KEPT_FOR: Duration = Duration::from_secs(5);

/// What it takes to ask for sources.
pub(crate) struct Asking {
    fetcher: Arc<Fetcher>,
    turns: Turns,
    politeness: Politeness,
    progress: Arc<Progress>,
    /// How long the servers of one source may take, and for how long in all it is waited for those that want to be left alone.
    limit: Duration,
    readers: Arc<Semaphore>,
}

impl Asking {
    pub(crate) fn new(
        fetcher: Arc<Fetcher>,
        turns: Turns,
        politeness: Politeness,
        progress: Arc<Progress>,
        limit: Duration,
    ) -> Self {
        Self { fetcher, turns, politeness, progress, limit, readers: Arc::new(Semaphore::new(READERS)) }
    }

    /// Leave to read one source, given back when dropped.
    pub(crate) async fn reader(&self) -> OwnedSemaphorePermit {
        let Ok(reader) = Arc::clone(&self.readers).acquire_owned().await else {
            unreachable!("the semaphore is never closed")
        };
        reader
    }

    /// Asks for `url` and follows its redirects, each request in its host's turn. A host that wants to be left alone is asked
    /// again after that. Returns the answer without its body, and the body; reading that fails once the servers have taken
    /// `producer.timeout`, or once the receiver of `wanted` is gone.
    pub(crate) async fn open<T: Send + 'static>(
        &self,
        url: &CanonicalUrl,
        wanted: mpsc::Sender<T>,
    ) -> Result<(Response, Parts), ReadError> {
        let mut trail = Trail::new(url.clone(), MAX_REDIRECTS);
        let mut patience = Patience::of(self.limit);
        let mut rest = self.limit;
        loop {
            let manners = self.politeness.manners(&trail.last().host());
            let (reader, ticket) = self.turn(&manners).await?;
            match patience.wait(self.fetcher.open(trail.last())).await {
                Ok(Opened::Redirect(target)) => {
                    ticket.end(true);
                    trail.go(target).map_err(ReadError::Fetch)?;
                }
                Ok(Opened::Body(head, body)) => {
                    let head = Response { redirected_to: trail.into_target(), ..head };
                    let body = download::within(Box::pin(body), patience, wanted).boxed();
                    return Ok((head, holding(body, reader, ticket)));
                }
                Err(failure) if failure.is_refusal() => {
                    let until = self.turns.push_back(&manners.key, &self.politeness, &failure).await;
                    let left = rest.checked_sub(until.wait_from(UnixMs::now()));
                    rest = left.ok_or(ReadError::Fetch(failure))?;
                }
                Err(failure) => {
                    ticket.end(failure.status.is_some_and(|status| status < 500));
                    return Err(ReadError::Fetch(failure));
                }
            }
        }
    }

    /// Waits for a turn, and for leave to read what comes. Whoever has to wait for its host lets another read meanwhile.
    ///
    /// It stays out of the line, which is as long as the crawl: else what the first sitemap lists would all come before the second.
    async fn turn(&self, manners: &Manners) -> Result<(OwnedSemaphorePermit, Ticket), ReadError> {
        let mut held = None;
        loop {
            let reader = self.reader().await;
            let wait = match self.turns.ask(manners, held, Standing::Aside).await {
                Turn::Now(ticket) => return Ok((reader, ticket)),
                Turn::At(wait, slot) => {
                    held = Some(slot);
                    wait
                }
                // A person may lift a back-off.
                Turn::Later(wait, _) => {
                    held = None;
                    wait.clamp(SOON, FIRST_LOOK)
                }
                Turn::Blocked => return Err(ReadError::Blocked(manners.key.clone())),
            };
            drop(reader);
            let _waiting = self.progress.waits_for(&manners.key, wait);
            sleep(wait).await;
        }
    }
}

/// `body`, whose reader and place are free when it ends, the place after [`PLACE_KEPT_FOR`] at the latest.
fn holding(body: Parts, reader: impl Send + 'static, ticket: Ticket) -> Parts {
    let (open, ended) = oneshot::channel::<()>();
    tokio::spawn(async move {
        // Either way nobody answers: the sender is dropped with the body.
        let _ = timeout(PLACE_KEPT_FOR, ended).await;
        ticket.end(true);
    });
    let parts = stream::unfold((body, reader, open), |(mut body, reader, open)| async {
        Some((body.next().await?, (body, reader, open)))
    });
    parts.fuse().boxed()
}

#[cfg(test)]
mod tests {
    use trawl_common::gcra::{Pace, Wish};
    use trawl_common::host::HostKey;
    use trawl_common::ticket::Places;

    use super::*;

    /// Places of which one is taken, and a body without end that holds it.
    fn held() -> (Arc<Places>, Parts) {
        let places = Arc::<Places>::default();
        let pace = Pace { concurrency: 1, ..Pace::UNLIMITED };
        let (standing, lapse) = (Standing::Aside, Duration::from_secs(60));
        let wish = Wish { pace, held: None, standing, deadline: None, token: 7, lapse };
        let ticket = Ticket::new(&places, HostKey::from_text("a.example"), &wish, 0);
        (Arc::clone(&places), holding(stream::pending().boxed(), (), ticket))
    }

    fn taken(places: &Places) -> usize {
        places.older_than(Duration::ZERO).len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_waits_for_its_reader_holds_a_place_for_a_while_only() {
        let (places, _body) = held();
        sleep(PLACE_KEPT_FOR / 2).await;
        assert_eq!(taken(&places), 1);
        sleep(PLACE_KEPT_FOR).await;
        assert_eq!(taken(&places), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_over_holds_no_place() {
        let (places, body) = held();
        drop(body);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(taken(&places), 0);
    }
}
