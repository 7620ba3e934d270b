//! Settlement: the only place that acknowledges, parks, retries or dead-letters.
//!
//! The order is the promise. What is to last is made durable first, then the record changes, and the
//! message goes last: a crash between two steps repeats a step, and repeating is harmless.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tracing::{debug, info};
use trawl_common::letter::{Cause, DeadLetter, Note};
use trawl_common::message::{Malformed, Message};
use trawl_common::names::CrawlRef;
use trawl_common::outcome::{Class, Failure, Outcome, Reason, Terminal};
use trawl_common::ports::{Claim, Finish, Linking, NewUrl, Page, Parked, Parking, Probe, Receipt};
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;

use crate::Shared;
use crate::gather::gather;
use crate::job::{Job, claim};
use crate::links;
use crate::remarks::{Remark, Remarks};
use crate::spiders::Loaded;

/// How many outcomes are settled in one step at most.
const BATCH: usize = 256;

/// Something to settle.
pub(crate) enum Settlement {
    /// A URL, with what its page yielded if it is done.
    Url(Box<Settled>),
    /// A mark of the fleet's own that came back.
    Probe(Probe, Receipt),
    /// Something that is no message.
    Malformed(Malformed, Receipt),
}

/// What became of a URL.
pub(crate) struct Settled {
    message: Message,
    attempts: u32,
    outcome: Outcome,
    yielded: Option<Yield>,
    remark: Option<Remark>,
    /// The slot of a job that runs alone: free for the next one when this is settled.
    slot: Option<OwnedSemaphorePermit>,
}

/// What a page yielded.
pub(crate) struct Yield {
    /// The spider that it was read for.
    pub(crate) spider: Arc<Loaded>,
    /// What goes to its sinks.
    pub(crate) page: Page,
    /// What it links to that is to be followed.
    pub(crate) links: Vec<NewUrl>,
    /// Where redirects led to the page.
    pub(crate) landed: Option<CanonicalUrl>,
    /// How many bytes its body had.
    pub(crate) bytes: u64,
    /// The required fields that it lacks.
    pub(crate) missing: Vec<String>,
}

impl Settlement {
    pub(crate) fn of(job: Job, outcome: Outcome) -> Self {
        Self::remarked(job, outcome, None)
    }

    pub(crate) fn remarked(job: Job, outcome: Outcome, remark: Option<Remark>) -> Self {
        let Job { message, attempts, .. } = job;
        Self::Url(Box::new(Settled { attempts, remark, ..Settled::untouched(message, outcome) }))
    }

    pub(crate) fn done(job: Job, yielded: Yield, remark: Option<Remark>) -> Self {
        let Job { message, attempts, .. } = job;
        let settled = Settled::untouched(message, Outcome::Done);
        Self::Url(Box::new(Settled { attempts, yielded: Some(yielded), remark, ..settled }))
    }

    /// The same, with the slot of a job that runs alone: its start has an end when it is settled, not before.
    pub(crate) fn with_slot(mut self, slot: OwnedSemaphorePermit) -> Self {
        if let Self::Url(settled) = &mut self {
            settled.slot = Some(slot);
        }
        self
    }

    /// For a message about which nothing is known but what is to become of it.
    pub(crate) fn untouched(message: Message, outcome: Outcome) -> Self {
        Self::Url(Box::new(Settled::untouched(message, outcome)))
    }
}

impl Settled {
    fn untouched(message: Message, outcome: Outcome) -> Self {
        Self { message, attempts: 0, outcome, yielded: None, remark: None, slot: None }
    }
}

/// Settles what comes, in batches, until every sender is gone.
pub(crate) async fn run(shared: Arc<Shared>, mut settlements: mpsc::Receiver<Settlement>) {
    let mut batch = Vec::with_capacity(BATCH);
    while gather(&mut settlements, &mut batch, BATCH).await > 0 {
        let mut plan = Plan::default();
        for settlement in batch.drain(..) {
            match settlement {
                Settlement::Url(settled) => plan.add(&shared, *settled),
                Settlement::Probe(probe, receipt) => plan.pass(probe, receipt),
                Settlement::Malformed(malformed, receipt) => plan.refuse(&shared, malformed, receipt),
            }
        }
        plan.carry_out(&shared).await;
    }
}

/// Gives back what is in hand, for any worker to take at once.
pub(crate) async fn release_all(shared: &Shared) {
    let messages = shared.hands.older_than(Duration::ZERO);
    if messages.is_empty() {
        return;
    }
    info!(urls = messages.len(), "giving back what did not finish in time");
    let mut plan = Plan::default();
    for message in messages {
        plan.add(shared, Settled::untouched(message, Outcome::Released));
    }
    plan.carry_out(shared).await;
}

/// What a batch of outcomes comes to.
#[derive(Default)]
struct Plan {
    pages: Vec<(Arc<Loaded>, Vec<Page>)>,
    letters: Vec<DeadLetter>,
    linking: Vec<(Linking, Message)>,
    remarks: Remarks,
    finishes: Vec<Finish>,
    parkings: Vec<(Parking, Message, UnixMs)>,
    waiting: Vec<Parked>,
    messages: Vec<Message>,
    releases: Vec<Claim>,
    probes: Vec<Probe>,
    slots: Vec<OwnedSemaphorePermit>,
    receipts: Vec<Receipt>,
    receipts_to_release: Vec<Receipt>,
}

impl Plan {
    /// A URL that ends stays in hand until it has ended, so that a copy of its message joins it; one that goes on its
    /// way is let go before, so that its next message does not.
    fn add(&mut self, shared: &Shared, settled: Settled) {
        let Settled { message, attempts, outcome, yielded, remark, slot } = settled;
        self.slots.extend(slot);
        let claim = claim(&message);
        if let Some(remark) = remark {
            self.remarks.add(&claim, remark);
        }
        match outcome {
            Outcome::Done => {
                let finish = Finish::new(claim.clone(), Terminal::Done);
                let Some(yielded) = yielded else { return self.finishes.push(finish) };
                let Yield { spider, page, links, landed, bytes, missing } = yielded;
                self.finishes.push(Finish { landed, bytes, missing, ..finish });
                self.keep(spider, page);
                if !links.is_empty() {
                    self.linking.push((Linking { page: claim, links }, message));
                }
            }
            Outcome::Skipped(skip) => {
                debug!(url = %claim.url, reason = skip.as_str(), "skipped");
                self.finishes
                    .push(Finish { why: Some(skip.as_str()), ..Finish::new(claim, Terminal::Skipped) });
            }
            Outcome::Failed(failure, reason) => {
                let attempts = if reason == Reason::Poison { attempts } else { attempts + 1 };
                self.bury(&message, Terminal::Failed, failed(shared, failure, reason, attempts));
            }
            Outcome::Expired => self.bury(&message, Terminal::Expired, expired(shared, attempts)),
            Outcome::Retry(_, until) => self.park(shared, claim, message, until, true),
            Outcome::Deferred { until } => self.park(shared, claim, message, until, false),
            Outcome::Waits { until } => {
                self.receipts.extend(shared.hands.let_go(&claim));
                // A slot that is still to come then is good: whoever holds the URL now, and keeps it no more, has not
                // used it.
                let slot = message.slot.filter(|&slot| slot > until);
                let message = Message { until: Some(until), slot, ..message };
                self.waiting.push(Parked { message, until });
            }
            Outcome::SentAgain => {
                self.receipts.extend(shared.hands.let_go(&claim));
                self.messages.push(message);
            }
            Outcome::Dropped => self.receipts.extend(shared.hands.let_go(&claim)),
            Outcome::Released => self.release(shared, claim, message),
        }
    }

    /// Puts a page with the others of its spider.
    fn keep(&mut self, spider: Arc<Loaded>, page: Page) {
        match self.pages.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &spider)) {
            Some((_, pages)) => pages.push(page),
            None => self.pages.push((spider, vec![page])),
        }
    }

    fn release(&mut self, shared: &Shared, claim: Claim, message: Message) {
        let receipts = shared.hands.let_go(&claim);
        if receipts.is_empty() {
            // Its message was acknowledged when it began: it needs a new one.
            self.park(shared, claim, message, UnixMs::now(), false);
        } else {
            self.releases.push(claim);
            self.receipts_to_release.extend(receipts);
        }
    }

    fn pass(&mut self, probe: Probe, receipt: Receipt) {
        self.probes.push(probe);
        self.receipts.push(receipt);
    }

    fn refuse(&mut self, shared: &Shared, malformed: Malformed, receipt: Receipt) {
        let Malformed { text, reason } = malformed;
        self.letters.push(DeadLetter::invalid(text, CrawlRef::adhoc(), reason, Some(shared.id.clone())));
        self.receipts.push(receipt);
    }

    fn bury(&mut self, message: &Message, terminal: Terminal, cause: Cause) {
        info!(
            url = %message.url, crawl = %message.crawl.id, reason = %cause.reason, error = cause.error,
            attempts = cause.attempts, "dead letter"
        );
        let (url, crawl) = (message.url.to_string(), message.crawl.clone());
        self.letters.push(DeadLetter { url, crawl, cause: cause.clone() });
        let note =
            Note { cause, lane: message.lane, depth: message.depth, referrer: message.referrer.clone() };
        let why = note.cause.class.map(Class::as_str);
        self.finishes.push(Finish { why, note: Some(note), ..Finish::new(claim(message), terminal) });
    }

    fn park(&mut self, shared: &Shared, claim: Claim, message: Message, until: UnixMs, failed: bool) {
        self.receipts.extend(shared.hands.let_go(&claim));
        let mut message = Message { until: Some(until), ..message };
        if failed {
            // It starts afresh, while a deferred one keeps its slot and how far redirects have led it.
            (message.slot, message.turn, message.hop) = (None, None, None);
        }
        let wake = shared.ports.queue.wake(until);
        self.parkings.push((Parking { claim, until: wake, failed }, message, until));
    }

    /// 1. Stores items and letters.
    /// 2. Admits what pages link to.
    /// 3. Puts URLs aside: record, message, confirm.
    /// 4. Sends again what is to go round once more.
    /// 5. Remembers pages: not before, or the next crawl would take for known what is stored nowhere.
    /// 6. Writes terminal states.
    /// 7. Gives records back.
    /// 8. Notes which probes came back.
    /// 9. Acknowledges.
    async fn carry_out(mut self, shared: &Shared) {
        let Shared { ports, health, .. } = shared;
        for (spider, pages) in &self.pages {
            // Each sink has its own patience: what one has stored it is not told again because another is away.
            let storing = spider.sinks.iter().map(|sink| health.until_done(sink.name(), || sink.put(pages)));
            join_all(storing).await;
        }
        if !self.letters.is_empty() {
            health.until_done("storing dead letters", || ports.queue.dead_letter(&self.letters)).await;
        }
        if !self.linking.is_empty() {
            self.admit_links(shared).await;
        }
        if !self.parkings.is_empty() {
            self.put_aside(shared).await;
        }
        if !self.waiting.is_empty() {
            health.until_done("parking", || ports.queue.park(&self.waiting)).await;
        }
        if !self.messages.is_empty() {
            health.until_done("sending again", || ports.queue.publish(&self.messages)).await;
        }
        std::mem::take(&mut self.remarks).write(shared).await;
        if !self.finishes.is_empty() {
            let ended = health.until_done("finishing", || ports.frontier.finish(&self.finishes)).await;
            shared.tally.count(&self.finishes, &ended);
            let receipts = self.finishes.iter().flat_map(|finish| shared.hands.let_go(&finish.claim));
            self.receipts.extend(receipts);
        }
        if !self.releases.is_empty() {
            health.until_done("giving back", || ports.frontier.release(&shared.id, &self.releases)).await;
        }
        if !self.probes.is_empty() {
            health.until_done("noting probes", || ports.frontier.passed(&self.probes)).await;
        }
        // A lost connection has put these messages back: they will be heard, and dropped or taken.
        let acked = ports.queue.ack(&self.receipts).await;
        let released = ports.queue.release(&self.receipts_to_release).await;
        if let Err(error) = acked.and(released) {
            debug!(%error, "not acknowledged; the messages come again");
        }
    }

    /// A page that this worker no longer holds goes round once more: another has it, or the store has forgotten it.
    async fn admit_links(&mut self, shared: &Shared) {
        let (pages, messages): (Vec<Linking>, Vec<Message>) = self.linking.drain(..).unzip();
        for (message, taken) in messages.into_iter().zip(links::admit(shared, pages).await) {
            let claim = claim(&message);
            if let Some(links) = taken {
                self.remarks.add_links(&claim, &links);
                continue;
            }
            self.finishes.retain(|finish| finish.claim != claim);
            self.remarks.leave_out(&claim);
            self.receipts.extend(shared.hands.let_go(&claim));
            self.messages.push(message);
        }
    }

    /// What this worker no longer holds goes round once more, as do messages that were said to.
    async fn put_aside(&mut self, shared: &Shared) {
        let Shared { ports, health, .. } = shared;
        let parkings: Vec<Parking> = self.parkings.iter().map(|(parking, ..)| parking.clone()).collect();
        let parking = || ports.frontier.park(&shared.id, &parkings);
        let held = health.until_done("putting aside", parking).await;
        let mut parked = Vec::with_capacity(held.len());
        for ((_, message, until), held) in self.parkings.drain(..).zip(held) {
            match held {
                true => parked.push(Parked { message, until }),
                false => self.messages.push(message),
            }
        }
        health.until_done("parking", || ports.queue.park(&parked)).await;
        for (crawl, urls) in urls_by_crawl(parked.into_iter().map(|parked| parked.message)) {
            health.until_done("confirming", || ports.frontier.confirm(&crawl, &urls)).await;
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

fn failed(shared: &Shared, failure: Failure, reason: Reason, attempts: u32) -> Cause {
    Cause {
        reason,
        class: Some(failure.class),
        status: failure.status,
        error: failure.detail,
        attempts,
        worker: Some(shared.id.clone()),
        failed_at: UnixMs::now(),
    }
}

fn expired(shared: &Shared, attempts: u32) -> Cause {
    Cause {
        reason: Reason::Expired,
        class: None,
        status: None,
        error: "its deadline passed before its turn".to_owned(),
        attempts,
        worker: Some(shared.id.clone()),
        failed_at: UnixMs::now(),
    }
}
