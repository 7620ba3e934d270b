//! Settlement: the only place that acknowledges, parks, retries or dead-letters.
//!
//! The order is the promise. What is to last is made durable first, then the record changes, and the
//! message goes last: a crash between two steps repeats a step, and repeating is harmless.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info};
use trawl_common::host::HostKey;
use trawl_common::letter::{Cause, DeadLetter, Note};
use trawl_common::message::{Malformed, Message};
use trawl_common::names::CrawlRef;
use trawl_common::outcome::{Class, Failure, Outcome, Reason, Skip, Terminal};
use trawl_common::ports::{Claim, Error, Finish, Linked, Linking, NewUrl, Parked, Parking, Probe, Receipt};
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;

use crate::Shared;
use crate::gather::gather;
use crate::job::claim;
use crate::links::{self, Admitted};
use crate::remarks::{Remark, Remarks};
use crate::settlement::{Settled, Settlement, Yield};
use crate::standstill::Why;

/// How many outcomes are settled in one step at most.
const BATCH: usize = 256;

/// Settles what comes, in batches, until every sender is gone. What there is no room for in a full store is held back, and keeps
/// no other from its end.
pub(crate) async fn run(shared: Arc<Shared>, mut settlements: mpsc::Receiver<Settlement>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut held_back = HeldBack::default();
    loop {
        let count = tokio::select! {
            count = gather(&mut settlements, &mut batch, BATCH), if !held_back.is_crowded() => Some(count),
            () = held_back.due() => None,
        };
        if count == Some(0) {
            if held_back.endings.is_empty() {
                break;
            }
            held_back.due().await;
        }
        let mut plan = Plan { endings: held_back.take_due(), ..Plan::default() };
        for settlement in batch.drain(..) {
            match settlement {
                Settlement::Url(settled) => plan.add(&shared, *settled),
                Settlement::Dropped(receipts) => plan.receipts.extend(receipts),
                Settlement::Probe(probe, receipt) => plan.pass(probe, receipt),
                Settlement::Malformed(malformed, receipts) => plan.refuse(&shared, malformed, receipts),
            }
        }
        held_back.add(&shared, plan.carry_out(&shared).await);
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

/// URLs that have ended, but for what a full store has no room for: what their pages link to, and what is to be remembered of them.
struct HeldBack {
    endings: Vec<Ending>,
    again: Instant,
}

impl Default for HeldBack {
    fn default() -> Self {
        Self { endings: Vec::new(), again: Instant::now() }
    }
}

impl HeldBack {
    /// What fails while there are any.
    const WHAT: &str = "taking in what pages link to";
    /// How soon they are tried again.
    const PAUSE: Duration = Duration::from_secs(1);

    /// Whether there are so many that no more are taken.
    fn is_crowded(&self) -> bool {
        self.endings.len() >= BATCH
    }

    /// Waits until they may be tried again; for ever if there are none.
    async fn due(&self) {
        match self.endings.is_empty() {
            true => std::future::pending().await,
            false => sleep_until(self.again).await,
        }
    }

    fn take_due(&mut self) -> Vec<Ending> {
        if self.again <= Instant::now() { std::mem::take(&mut self.endings) } else { Vec::new() }
    }

    fn add(&mut self, shared: &Shared, endings: Vec<Ending>) {
        if !endings.is_empty() {
            self.again = Instant::now() + Self::PAUSE;
            self.endings.extend(endings);
        }
        match self.endings.is_empty() {
            true => shared.health.works(Self::WHAT),
            false => shared.health.fails(Self::WHAT, &Error::full()),
        }
    }
}

/// A URL that ends here, unless it turns out to be no longer this worker's.
struct Ending {
    message: Message,
    finish: Finish,
    /// Why it is a dead letter, if it is one.
    cause: Option<Cause>,
    /// What its page links to: first what was found, then what the frontier took of it.
    links: Vec<NewUrl>,
    remark: Option<Remark>,
}

impl Ending {
    fn new(message: Message, terminal: Terminal, remark: Option<Remark>) -> Self {
        let finish = Finish::new(claim(&message), terminal);
        Self { message, finish, cause: None, links: Vec::new(), remark }
    }

    /// What other programs are told of it.
    fn letter(&self) -> Option<DeadLetter> {
        let (url, crawl) = (self.message.url.to_string(), self.message.crawl.clone());
        self.cause.clone().map(|cause| DeadLetter { url, crawl, cause })
    }
}

/// A URL that goes to the ladder.
struct PutAside {
    message: Message,
    until: UnixMs,
    failed: bool,
}

/// What a batch of outcomes comes to.
#[derive(Default)]
struct Plan {
    letters: Vec<DeadLetter>,
    endings: Vec<Ending>,
    held_back: Vec<Ending>,
    parkings: Vec<PutAside>,
    waiting: Vec<(Message, UnixMs)>,
    messages: Vec<Message>,
    releases: Vec<Claim>,
    probes: Vec<Probe>,
    slots: Vec<OwnedSemaphorePermit>,
    receipts: Vec<Receipt>,
    receipts_to_release: Vec<Receipt>,
}

impl Plan {
    /// A URL stays in hand, and its lease is extended, until it has ended or its next message is about to be sent: a copy of
    /// its message joins it, the next one is not to.
    fn add(&mut self, shared: &Shared, settled: Settled) {
        shared.url_log.settles(&settled);
        let Settled { message, attempts, outcome, yielded, remark, slot, took: _ } = settled;
        self.slots.extend(slot);
        match outcome {
            Outcome::Done => {
                let mut ending = Ending::new(message, Terminal::Done, remark);
                if let Some(Yield { links, left_out, landed, bytes, missing, .. }) = yielded {
                    ending.finish = Finish { landed, bytes, missing, left_out, ..ending.finish };
                    ending.links = links;
                }
                self.endings.push(ending);
            }
            Outcome::Skipped(skip) => {
                debug!(url = %message.url, reason = skip.as_str(), "skipped");
                let mut ending = Ending::new(message, Terminal::Skipped, remark);
                ending.finish.why = Some(skip.as_str());
                if skip == Skip::Blocked {
                    ending.finish.note = Some(note(&ending.message, blocked(shared, attempts)));
                }
                self.endings.push(ending);
            }
            Outcome::Failed(failure, reason) => {
                let attempts = if reason == Reason::Poison { attempts } else { attempts + 1 };
                let ending = Ending::new(message, Terminal::Failed, remark);
                self.bury(ending, failed(shared, failure, reason, attempts));
            }
            Outcome::Expired => {
                self.bury(Ending::new(message, Terminal::Expired, remark), expired(shared, attempts));
            }
            Outcome::Retry(failure, until) => {
                let host = HostKey::host(&message.target().host());
                shared.standstill.waits(&host, until, Why::Retry(failure.class));
                self.park(message, until, true);
            }
            Outcome::Deferred { until } => self.park(message, until, false),
            // Its message does not say until when: another worker would wait for that.
            Outcome::Unready { until } => self.parkings.push(PutAside { message, until, failed: false }),
            Outcome::Waits { until } => {
                // A slot that is still to come then is good: whoever holds the URL now, and keeps it no more, has not
                // used it.
                let slot = message.slot.filter(|&slot| slot > until);
                // Its turn may be later than when it is heard again.
                let message = Message { until: message.until.max(Some(until)), slot, ..message };
                self.waiting.push((message, until));
            }
            Outcome::SentAgain => self.messages.push(message),
            Outcome::Released => self.release(shared, message),
        }
    }

    fn release(&mut self, shared: &Shared, message: Message) {
        let claim = claim(&message);
        let receipts = shared.hands.receipts(&claim);
        if receipts.is_empty() {
            // Its message was acknowledged when it began: it needs a new one.
            self.park(message, UnixMs::now(), false);
        } else {
            self.releases.push(claim);
            self.receipts_to_release.extend(receipts);
        }
    }

    fn pass(&mut self, probe: Probe, receipt: Receipt) {
        self.probes.push(probe);
        self.receipts.push(receipt);
    }

    fn refuse(&mut self, shared: &Shared, malformed: Malformed, receipts: Vec<Receipt>) {
        let Malformed { text, reason } = malformed;
        self.letters.push(DeadLetter::invalid(text, CrawlRef::adhoc(), reason, Some(shared.id.clone())));
        self.receipts.extend(receipts);
    }

    fn bury(&mut self, mut ending: Ending, cause: Cause) {
        info!(
            url = %ending.message.url, crawl = %ending.message.crawl.id, reason = %cause.reason, error = cause.error,
            attempts = cause.attempts, "dead letter"
        );
        ending.finish.why = cause.class.map(Class::as_str);
        ending.finish.note = Some(note(&ending.message, cause.clone()));
        ending.cause = Some(cause);
        self.endings.push(ending);
    }

    fn park(&mut self, message: Message, until: UnixMs, failed: bool) {
        let mut message = Message { until: Some(until), ..message };
        if failed {
            // It starts afresh, while a deferred one keeps its slot and how far redirects have led it.
            (message.slot, message.turn, message.hop) = (None, None, None);
        }
        self.parkings.push(PutAside { message, until, failed });
    }

    /// For a URL whose next message is about to be sent.
    fn let_go(&mut self, shared: &Shared, message: &Message) {
        self.receipts.extend(shared.hands.let_go(&claim(message)));
    }

    /// Items are stored by now.
    ///
    /// 1. Extends the leases of what is to end, and leaves out what is no longer this worker's.
    /// 2. Stores dead letters.
    /// 3. Admits what pages link to.
    /// 4. Puts URLs aside: record, message, confirm.
    /// 5. Remembers pages: not before, or the next crawl would take for known what is stored nowhere.
    /// 6. Writes terminal states.
    /// 7. Sends again what is to go round once more.
    /// 8. Gives records back.
    /// 9. Notes which probes came back.
    /// 10. Acknowledges.
    ///
    /// Returns what it held back, as the store is full.
    async fn carry_out(mut self, shared: &Shared) -> Vec<Ending> {
        let Shared { ports, health, .. } = shared;
        self.extend_leases(shared).await;
        self.send_letters(shared).await;
        self.admit_links(shared).await;
        if !self.parkings.is_empty() {
            self.put_aside(shared).await;
        }
        if !self.waiting.is_empty() {
            let waiting = std::mem::take(&mut self.waiting);
            let mut parked = Vec::with_capacity(waiting.len());
            for (message, until) in waiting {
                self.let_go(shared, &message);
                parked.push(Parked { message, wake: ports.queue.wake(until) });
            }
            health.until_done("parking", || ports.queue.park(&parked)).await;
        }
        self.remember(shared).await;
        self.finish(shared).await;
        if !self.messages.is_empty() {
            let messages = std::mem::take(&mut self.messages);
            messages.iter().for_each(|message| self.let_go(shared, message));
            health.until_done("sending again", || ports.queue.publish(&messages)).await;
        }
        if !self.releases.is_empty() {
            health.until_done("giving back", || ports.frontier.release(&shared.id, &self.releases)).await;
            let late = self.releases.iter().flat_map(|claim| shared.hands.let_go(claim));
            self.receipts_to_release.extend(late);
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
        self.held_back
    }

    /// What has been in hand for long may be another's by now, and nobody takes a dead letter back.
    async fn extend_leases(&mut self, shared: &Shared) {
        let is_in_doubt = |ending: &Ending| {
            ending.cause.is_some() || shared.hands.is_older(&ending.message, lease_period(shared))
        };
        let (in_doubt, sure) = std::mem::take(&mut self.endings).into_iter().partition(is_in_doubt);
        self.endings = sure;
        let messages: Vec<Message> = in_doubt.iter().map(|ending: &Ending| ending.message.clone()).collect();
        for (ending, is_held) in in_doubt.into_iter().zip(extend_leases(shared, &messages).await) {
            match is_held {
                true => self.endings.push(ending),
                false => self.messages.push(ending.message),
            }
        }
    }

    async fn send_letters(&mut self, shared: &Shared) {
        let Shared { ports, health, .. } = shared;
        if !self.letters.is_empty() {
            health.until_done("noting what is no URL", || ports.frontier.note_invalid(&self.letters)).await;
        }
        self.letters.extend(self.endings.iter().filter_map(Ending::letter));
        if !self.letters.is_empty() {
            health.until_done("storing dead letters", || ports.queue.dead_letter(&self.letters)).await;
        }
    }

    /// A page that this worker no longer holds goes round once more: another has it, or the store has forgotten it.
    async fn admit_links(&mut self, shared: &Shared) {
        let is_linking = |ending: &mut Ending| !ending.links.is_empty();
        let linking: Vec<Ending> = self.endings.extract_if(.., is_linking).collect();
        if linking.is_empty() {
            return;
        }
        let linking_of =
            |ending: &Ending| Linking { page: ending.finish.claim.clone(), links: ending.links.clone() };
        let admitted = links::admit(shared, linking.iter().map(linking_of).collect()).await;
        for (ending, taken) in linking.into_iter().zip(admitted) {
            match taken {
                Linked::Taken(Admitted { links, left_out }) => {
                    let mut ending = Ending { links, ..ending };
                    left_out.iter().for_each(|(limit, links)| ending.finish.left_out.add(limit, links));
                    self.endings.push(ending);
                }
                Linked::NotHeld => self.messages.push(ending.message),
                Linked::NoRoom => self.held_back.push(ending),
            }
        }
    }

    /// The record and the message are told the same instant. What this worker no longer holds goes round once more.
    async fn put_aside(&mut self, shared: &Shared) {
        let Shared { ports, health, .. } = shared;
        let mut parkings = Vec::with_capacity(self.parkings.len());
        let mut parked = Vec::with_capacity(self.parkings.len());
        for PutAside { message, until, failed } in self.parkings.drain(..) {
            let wake = ports.queue.wake(until);
            parkings.push(Parking { claim: claim(&message), until: wake.at, failed });
            parked.push(Parked { message: Message { wake: Some(wake.at), ..message }, wake });
        }
        let parking = || ports.frontier.park(&shared.id, &parkings);
        let mut held = health.until_done("putting aside", parking).await.into_iter();
        let (parked, lost): (Vec<Parked>, Vec<Parked>) =
            parked.into_iter().partition(|_| held.next() == Some(true));
        parked.iter().for_each(|parked| self.let_go(shared, &parked.message));
        self.messages.extend(lost.into_iter().map(|parked| parked.message));
        health.until_done("parking", || ports.queue.park(&parked)).await;
        for (crawl, urls) in urls_by_crawl(parked.into_iter().map(|parked| parked.message)) {
            health.until_done("confirming", || ports.frontier.confirm(&crawl, &urls)).await;
        }
    }

    async fn remember(&mut self, shared: &Shared) {
        let mut remarks = Remarks::default();
        for ending in &self.endings {
            if let Some(remark) = &ending.remark {
                remarks.add(&ending.finish.claim, remark, &ending.links);
            }
        }
        if remarks.write(shared).await.is_err() {
            self.held_back.extend(self.endings.extract_if(.., |ending| ending.remark.is_some()));
        }
    }

    /// What turns out to be no longer this worker's goes round once more.
    async fn finish(&mut self, shared: &Shared) {
        let Shared { ports, health, .. } = shared;
        let (finishes, messages): (Vec<Finish>, Vec<Message>) =
            self.endings.drain(..).map(|ending| (ending.finish, ending.message)).unzip();
        if finishes.is_empty() {
            return;
        }
        let finishing = || ports.frontier.finish(&shared.id, &finishes);
        let ended = health.until_done("finishing", finishing).await;
        shared.tally.count(&finishes, &ended);
        for (message, ended) in messages.into_iter().zip(ended) {
            match ended {
                true => self.let_go(shared, &message),
                false => self.messages.push(message),
            }
        }
    }
}

/// What has been in hand for longer is kept by saying so; most pages are settled before.
pub(crate) fn lease_period(shared: &Shared) -> Duration {
    shared.settings.recovery.patience / 12
}

/// Goes on holding these; returns, in order, which are still this worker's.
pub(crate) async fn extend_leases(shared: &Shared, messages: &[Message]) -> Vec<bool> {
    if messages.is_empty() {
        return Vec::new();
    }
    let keeping = || shared.ports.frontier.keep(&shared.id, messages);
    shared.health.until_done("keeping what is in hand", keeping).await
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
    unasked(shared, Reason::Expired, "its deadline passed before its turn", attempts)
}

fn blocked(shared: &Shared, attempts: u32) -> Cause {
    unasked(shared, Reason::Blocked, "its host, or one that it redirects to, is blocked", attempts)
}

fn unasked(shared: &Shared, reason: Reason, error: &str, attempts: u32) -> Cause {
    Cause {
        reason,
        class: None,
        status: None,
        error: error.to_owned(),
        attempts,
        worker: Some(shared.id.clone()),
        failed_at: UnixMs::now(),
    }
}

/// What the list of dead letters keeps of a URL.
fn note(message: &Message, cause: Cause) -> Note {
    let Message { lane, depth, referrer, .. } = message;
    Note { cause, lane: *lane, depth: *depth, referrer: referrer.clone() }
}
