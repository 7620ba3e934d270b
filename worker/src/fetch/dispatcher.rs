//! Starts fetches that have permission.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::outcome::Outcome;
use trawl_common::ports::{Claim, Fatal};
use trawl_common::trace;

use super::Fetching;
use super::page::{Processed, hand_over, process};
use crate::claimed::ClaimedUrl;
use crate::claimed::settlement::{InFlightGuard, Settlement, panicked};
use crate::schedule::domains::{Away, SLOW_PAGE};
use crate::schedule::{Next, Permits, Ready};

/// Starts URLs as they become ready, until `ready` is closed and empty; then waits for the running ones. After `stop`,
/// URLs that have not started are released. Stops the worker if a port fails permanently.
pub(crate) async fn run(
    fetching: Arc<Fetching>,
    mut ready: mpsc::Receiver<Vec<Ready>>,
    settle: mpsc::Sender<Settlement>,
    stop: CancellationToken,
) {
    let mut running = JoinSet::new();
    while let Some(urls) = ready.recv().await {
        while running.try_join_next().is_some() {}
        if stop.is_cancelled() {
            for Ready { claimed, .. } in urls {
                pass_on(&settle, Settlement::from_url(claimed, Outcome::Release)).await;
            }
            continue;
        }
        let started = match start(&fetching, urls, &settle).await {
            Ok(started) => started,
            Err(error) => return fetching.context.health.abort(error),
        };
        for Ready { claimed, next } in started {
            let (fetching, settle) = (Arc::clone(&fetching), settle.clone());
            running.spawn(async move {
                let (settlement, permit) = match next {
                    Next::Fetch(permits) => fetch(&fetching, claimed, *permits).await,
                    Next::HandOver(failure) => {
                        let handing = hand_over(&fetching, claimed.clone(), *failure);
                        (unless_panicked(claimed, handing).await, None)
                    }
                };
                pass_on(&settle, settlement).await;
                drop(permit);
            });
        }
    }
    while running.join_next().await.is_some() {}
}

/// Counts the starts, and returns the URLs that may start.
async fn start(
    fetching: &Fetching,
    urls: Vec<Ready>,
    settle: &mpsc::Sender<Settlement>,
) -> Result<Vec<Ready>, Fatal> {
    let claims: Vec<Claim> = urls.iter().map(|ready| ready.claimed.claim()).collect();
    let starts = fetching.frontier.start(&claims).await?;
    let mut go = Vec::with_capacity(urls.len());
    for (ready, start) in urls.into_iter().zip(starts) {
        match start.outcome() {
            None => go.push(ready),
            Some(Outcome::Snooze { until }) => {
                pass_on(settle, Settlement::snooze(ready.claimed, until)).await
            }
            Some(outcome) => pass_on(settle, Settlement::from_url(ready.claimed, outcome)).await,
        }
    }
    Ok(go)
}

/// Processes a page. Returns its fetch permit, unless the page is slow and gave it up, or keeps it until it is settled.
async fn fetch(
    fetching: &Fetching,
    claimed: ClaimedUrl,
    Permits { host_permit, fetch_permit, mut under_way, is_alone }: Permits,
) -> (Settlement, Option<OwnedSemaphorePermit>) {
    fetching.url_log.log_start(&claimed);
    trace::scheduled(claimed.message.trace.as_deref());
    let mut fetch_permit = fetch_permit;
    let began = Instant::now();
    let mut working = pin!(AssertUnwindSafe(process(fetching, claimed.clone(), host_permit)).catch_unwind());
    let put_off = |away: Away| Ok(Processed::Settled(away.settle(claimed.clone())));
    let processed = match timeout(SLOW_PAGE, &mut working).await {
        Ok(processed) => processed,
        Err(_) => match under_way.mark_slow() {
            _ if is_alone => working.await,
            Ok(()) => {
                fetch_permit = fetch_permit.filter(|_| under_way.needs_permit());
                tokio::select! {
                    processed = &mut working => processed,
                    away = under_way.gives_way(&fetching.threads) => put_off(away),
                }
            }
            // Others could not start while it continues.
            Err(away) => put_off(away),
        },
    };
    if processed.as_ref().is_ok_and(is_answered) {
        under_way.mark_answered();
    }
    // To take many links in takes long as well.
    let is_linking = matches!(&processed, Ok(Processed::Settled(settlement)) if settlement.has_many_links());
    let place = is_linking.then(|| -> InFlightGuard { Box::new(under_way.in_place()) });
    if let Ok(Processed::ForOthers(_) | Processed::Without(_)) = &processed {
        // Programs and browsers take their own time, during which others are fetched.
        fetch_permit = fetch_permit.filter(|_| is_alone);
    }
    let settlement = match processed {
        Ok(Processed::Settled(settlement)) => settlement,
        Ok(Processed::ForOthers(page)) => unless_panicked(claimed, page.settled(fetching)).await,
        Ok(Processed::Without(without)) => {
            let (claimed_then, failure) = *without;
            unless_panicked(claimed, hand_over(fetching, claimed_then, failure)).await
        }
        Err(_) => Settlement::from_url(claimed, panicked()),
    };
    let settlement = settlement.after(began.elapsed()).with_place(place);
    match is_alone {
        true => (settlement.with_alone(fetch_permit), None),
        false => (settlement, fetch_permit),
    }
}

/// Whether its host gave an answer, whatever that was.
fn is_answered(processed: &Processed) -> bool {
    let outcome = match processed {
        Processed::ForOthers(_) => None,
        Processed::Settled(settlement) => settlement.outcome(),
        Processed::Without(without) => Some(&without.1.outcome),
    };
    match outcome {
        None | Some(Outcome::Skipped(_)) => true,
        Some(Outcome::Retry { failure, .. } | Outcome::Failed(failure, _)) => failure.status.is_some(),
        Some(_) => false,
    }
}

/// Returns the outcome of a URL, unless handling it panics.
async fn unless_panicked(claimed: ClaimedUrl, handling: impl Future<Output = Settlement>) -> Settlement {
    let settlement = AssertUnwindSafe(handling).catch_unwind().await;
    settlement.unwrap_or_else(|_| Settlement::from_url(claimed, panicked()))
}

async fn pass_on(settle: &mpsc::Sender<Settlement>, settlement: Settlement) {
    // Closed only when the settler is gone, which ends after this.
    let _ = settle.send(settlement).await;
}
