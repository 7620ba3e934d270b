//! Settlement: the only place that acknowledges, parks, retries or dead-letters.
//!
//! The order is the promise. What is to last is made durable first, then the record changes, and the
//! message goes last: a crash between two steps repeats a step, and repeating is harmless.

use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::info;
use trawl_common::item::Item;
use trawl_common::letter::DeadLetter;
use trawl_common::message::{Malformed, Message};
use trawl_common::names::CrawlRef;
use trawl_common::outcome::{Failure, Outcome, Reason, Terminal};
use trawl_common::ports::{Claim, Finish, Parked, Parking, Receipt};
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;

use crate::Shared;
use crate::backoff::until_done;
use crate::job::Job;

/// How many outcomes are settled in one step at most.
const BATCH: usize = 256;

/// Something to settle.
pub(crate) enum Settlement {
    /// A job, with the item that it yielded if it is done.
    Job(Box<(Job, Outcome, Option<Item>)>),
    /// Something that is no message.
    Malformed(Malformed, Receipt),
}

impl Settlement {
    pub(crate) fn of(job: Job, outcome: Outcome) -> Self {
        Self::Job(Box::new((job, outcome, None)))
    }

    pub(crate) fn with_item(job: Job, item: Item) -> Self {
        Self::Job(Box::new((job, Outcome::Done, Some(item))))
    }
}

/// Settles what comes, in batches, until every sender is gone.
pub(crate) async fn run(shared: Arc<Shared>, mut settlements: mpsc::Receiver<Settlement>) {
    let mut batch = Vec::with_capacity(BATCH);
    while settlements.recv_many(&mut batch, BATCH).await > 0 {
        let mut plan = Plan::default();
        for settlement in batch.drain(..) {
            match settlement {
                Settlement::Job(parts) => plan.add(&shared, *parts),
                Settlement::Malformed(malformed, receipt) => plan.refuse(&shared, malformed, receipt),
            }
        }
        plan.carry_out(&shared).await;
    }
}

/// Gives back what is in hand, for any worker to take at once.
pub(crate) async fn release_all(shared: &Shared) {
    let claims = shared.hands.claims();
    if claims.is_empty() {
        return;
    }
    info!(urls = claims.len(), "giving back what did not finish in time");
    let mut plan = Plan::default();
    for claim in claims {
        plan.receipts_to_release.extend(shared.hands.let_go(&claim));
        plan.releases.push(claim);
    }
    plan.carry_out(shared).await;
}

/// What a batch of outcomes comes to.
#[derive(Default)]
struct Plan {
    items: Vec<Item>,
    letters: Vec<DeadLetter>,
    finishes: Vec<Finish>,
    parkings: Vec<(Parking, Message, UnixMs)>,
    releases: Vec<Claim>,
    receipts: Vec<Receipt>,
    receipts_to_release: Vec<Receipt>,
}

impl Plan {
    fn add(&mut self, shared: &Shared, (job, outcome, item): (Job, Outcome, Option<Item>)) {
        let claim = job.claim();
        let receipts = shared.hands.let_go(&claim);
        self.items.extend(item);
        match outcome {
            Outcome::Done => self.finish(claim, Terminal::Done, None),
            Outcome::Skipped(skip) => self.finish(claim, Terminal::Skipped, Some(skip.as_str().to_owned())),
            Outcome::Failed(failure, reason) => {
                let attempts = if reason == Reason::Poison { job.attempts } else { job.attempts + 1 };
                self.bury(
                    shared,
                    claim,
                    Terminal::Failed,
                    letter(shared, &job, reason, Some(&failure), attempts),
                );
            }
            Outcome::Expired => {
                let letter = letter(shared, &job, Reason::Expired, None, job.attempts);
                self.bury(shared, claim, Terminal::Expired, letter);
            }
            Outcome::Retry(_, until) => self.park(shared, claim, job.message, until, true),
            Outcome::Deferred { until } => self.park(shared, claim, job.message, until, false),
            Outcome::Dropped => {}
            Outcome::Released => {
                self.releases.push(claim);
                self.receipts_to_release.extend(receipts);
                return;
            }
        }
        self.receipts.extend(receipts);
    }

    fn refuse(&mut self, shared: &Shared, malformed: Malformed, receipt: Receipt) {
        self.letters.push(DeadLetter {
            url: malformed.text,
            crawl: CrawlRef::adhoc(),
            reason: Reason::Invalid,
            class: None,
            status: None,
            error: malformed.reason,
            attempts: 0,
            worker: Some(shared.id.clone()),
            failed_at: UnixMs::now(),
        });
        self.receipts.push(receipt);
    }

    fn finish(&mut self, claim: Claim, terminal: Terminal, note: Option<String>) {
        self.finishes.push(Finish { claim, terminal, note });
    }

    fn bury(&mut self, shared: &Shared, claim: Claim, terminal: Terminal, letter: DeadLetter) {
        info!(
            url = %claim.url, crawl = %claim.crawl.id, reason = %letter.reason, error = letter.error,
            attempts = letter.attempts, worker = %shared.id, "dead letter"
        );
        self.finish(claim, terminal, Some(note(&letter)));
        self.letters.push(letter);
    }

    fn park(&mut self, shared: &Shared, claim: Claim, message: Message, until: UnixMs, failed: bool) {
        // A failed URL needs a new slot; a deferred one keeps the slot that it may have.
        let slot = message.slot.filter(|_| !failed);
        let message = Message { until: Some(until), slot, ..message };
        let wake = shared.ports.queue.wake(until);
        self.parkings.push((Parking { claim, until: wake, failed }, message, until));
    }

    /// 1. Stores items and letters.
    /// 2. Puts URLs aside: record, message, confirm.
    /// 3. Writes terminal states.
    /// 4. Gives records back.
    /// 5. Acknowledges.
    async fn carry_out(self, shared: &Shared) {
        let ports = &shared.ports;
        if !self.items.is_empty() {
            until_done("storing items", || ports.sink.put(&self.items)).await;
        }
        if !self.letters.is_empty() {
            until_done("storing dead letters", || ports.queue.dead_letter(&self.letters)).await;
        }
        self.put_aside(shared).await;
        if !self.finishes.is_empty() {
            let ended = until_done("finishing", || ports.frontier.finish(&self.finishes)).await;
            shared.tally.count(&self.finishes, &ended);
        }
        if !self.releases.is_empty() {
            until_done("giving back", || ports.frontier.release(&shared.id, &self.releases)).await;
        }
        // A lost connection has put these messages back: they will be heard, and dropped or taken.
        let acked = ports.queue.ack(&self.receipts).await;
        let released = ports.queue.release(&self.receipts_to_release).await;
        if let Err(error) = acked.and(released) {
            tracing::debug!(%error, "not acknowledged; the messages come again");
        }
    }

    async fn put_aside(&self, shared: &Shared) {
        if self.parkings.is_empty() {
            return;
        }
        let ports = &shared.ports;
        let parkings: Vec<Parking> = self.parkings.iter().map(|(parking, ..)| parking.clone()).collect();
        let held = until_done("putting aside", || ports.frontier.park(&shared.id, &parkings)).await;
        let ours = self.parkings.iter().zip(held).filter(|(_, held)| *held).map(|(parking, _)| parking);
        let parked: Vec<Parked> =
            ours.map(|(_, message, until)| Parked { message: message.clone(), until: *until }).collect();
        until_done("parking", || ports.queue.park(&parked)).await;
        for (crawl, urls) in urls_by_crawl(parked.into_iter().map(|parked| parked.message)) {
            until_done("confirming", || ports.frontier.confirm(&crawl, &urls)).await;
        }
    }
}

/// The URLs of each crawl.
pub(crate) fn urls_by_crawl(messages: impl Iterator<Item = Message>) -> Vec<(CrawlRef, Vec<CanonicalUrl>)> {
    let mut urls: std::collections::BTreeMap<CrawlRef, Vec<CanonicalUrl>> = Default::default();
    for message in messages {
        urls.entry(message.crawl).or_default().push(message.url);
    }
    urls.into_iter().collect()
}

fn letter(
    shared: &Shared,
    job: &Job,
    reason: Reason,
    failure: Option<&Failure>,
    attempts: u32,
) -> DeadLetter {
    DeadLetter {
        url: job.message.url.to_string(),
        crawl: job.message.crawl.clone(),
        reason,
        class: failure.map(|failure| failure.class),
        status: failure.and_then(|failure| failure.status),
        error: failure.map_or_else(|| "its deadline passed before its turn".to_owned(), |f| f.detail.clone()),
        attempts,
        worker: Some(shared.id.clone()),
        failed_at: UnixMs::now(),
    }
}

/// What the list of failed URLs keeps of a letter, as JSON.
fn note(letter: &DeadLetter) -> String {
    serde_json::json!({
        "reason": letter.reason.as_str(),
        "class": letter.class.map(|class| class.as_str()),
        "status": letter.status,
        "error": letter.error,
        "attempts": letter.attempts,
        "worker": letter.worker.as_ref().map(|worker| worker.as_str()),
        "failed_at": letter.failed_at.0,
    })
    .to_string()
}
