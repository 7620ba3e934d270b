//! Settlement: writes the outcomes of a worker's URLs. Messages that no worker has to see are settled where they are
//! found (`claiming.rs`, `upkeep.rs`).
//!
//! The order guarantees safety: first results are made durable, then the record changes, and last the message is
//! acknowledged. After a crash between two steps a step is repeated, which is harmless.

use tokio::sync::oneshot;
use tracing::{debug, info};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::ladder::until_another_worker;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    Claim, Completion, Disposition, ErrorKind, Fatal, Finish, Settled, Settlement, one_each,
};
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

use crate::broker::{Newer, Parked, Receipt};
use crate::internal_message::InternalMessage;
use crate::links::{self, Admitted};
use crate::member::Member;
use crate::outbox::{self, Tries};
use crate::records::{Linked, Linking, Parking, Probe};
use crate::visits::Visits;

/// Maximum number of outcomes that are settled in one step.
pub(crate) const BATCH: usize = 256;

/// Maximum length of an invalid URL in the log.
const MAX_SHOWN_URL: usize = 200;

/// A URL that ends, if this worker still holds it.
struct Finishing {
    message: Message,
    completion: Completion,
}

/// A URL to be parked on the delay ladder.
struct Delay {
    message: Message,
    until: UnixMs,
    failed: bool,
}

/// The steps that settle a batch of outcomes.
#[derive(Default)]
pub(crate) struct Plan {
    dead_letters: Vec<DeadLetter>,
    finishing: Vec<Finishing>,
    delays: Vec<Delay>,
    waiting: Vec<(Message, UnixMs)>,
    newer: Vec<Newer>,
    republish: Vec<Message>,
    releases: Vec<Message>,
    probes: Vec<Probe>,
    receipts: Vec<Receipt>,
    receipts_to_release: Vec<Receipt>,
    flushed: Vec<oneshot::Sender<()>>,
    settled: Settled,
}

impl Plan {
    /// Adds a worker's settlement. A URL stays held, and its lease is extended, until it has ended or its next message
    /// is about to be sent: a copy of its message may join it, its next message must not.
    pub(crate) fn add(&mut self, member: &Member, Settlement { message, disposition }: Settlement) {
        match disposition {
            Disposition::Finish(completion) => {
                self.finishing.push(Finishing { message, completion: *completion })
            }
            Disposition::Retry { until } => {
                self.delays.push(Delay { message: message.retry(until), until, failed: true });
            }
            Disposition::Snooze { until } => self.snooze(message, until),
            // Its message has no `until`, since another worker would wait for it.
            Disposition::Requeue { until } => {
                self.delays.push(Delay { message: message.requeue(), until, failed: false });
            }
            Disposition::Republish => self.republish.push(message),
            Disposition::Release => self.release(member, message),
        }
    }

    /// Adds a message that the engine settles by itself.
    pub(crate) fn add_internal(&mut self, member: &Member, own: InternalMessage) {
        match own {
            InternalMessage::Dropped(receipts) => self.receipts.extend(receipts),
            InternalMessage::Probe(probe, receipt) => {
                self.probes.push(probe);
                self.receipts.push(receipt);
            }
            InternalMessage::Newer(newer, receipt) => {
                self.newer.push(newer);
                self.receipts.push(receipt);
            }
            InternalMessage::Malformed(Malformed { text, reason }, receipts) => {
                if member.settings.log.urls {
                    info!(
                        text = printable(&text, MAX_SHOWN_URL),
                        reason, "invalid: no URL, it is a dead letter"
                    );
                }
                let worker = Some(member.worker.clone());
                self.dead_letters.push(DeadLetter::invalid(text, CrawlRef::adhoc(), reason, worker));
                self.receipts.extend(receipts);
            }
            InternalMessage::Waits { message, until } => {
                // Then a slot that is still ahead stays valid: if the present holder loses the URL, the slot was not
                // used.
                let slot = message.slot.filter(|&slot| slot > until);
                // Its position in the waitlist may be later than its next claim.
                let message = Message { until: message.until.max(Some(until)), slot, ..message };
                self.waiting.push((message, until));
            }
            InternalMessage::Republish(message) => self.republish.push(message),
            InternalMessage::Flush(done) => self.flushed.push(done),
        }
    }

    fn snooze(&mut self, message: Message, until: UnixMs) {
        self.delays.push(Delay { message: message.snooze(until), until, failed: false });
    }

    fn release(&mut self, member: &Member, message: Message) {
        let claim = Claim::new(&message);
        let receipts = member.held.receipts_if(&claim, |_| true);
        if receipts.is_empty() {
            // Its message was acknowledged when it started: it needs a new one.
            self.snooze(message, UnixMs::now());
        } else {
            self.releases.push(message);
            self.receipts_to_release.extend(receipts);
        }
    }

    /// Stops holding a URL whose next message is about to be sent.
    fn forget(&mut self, member: &Member, message: &Message) {
        self.receipts.extend(member.held.forget(&Claim::new(message)));
    }

    /// Carries out the plan. Items are already stored.
    ///
    /// 1. Extends the leases of URLs that are to end, and leaves out those that this worker no longer holds.
    /// 2. Publishes dead letters.
    /// 3. Admits the links of pages and the requests of programs.
    /// 4. Parks URLs: record, message, confirm.
    /// 5. Stores the page history: not earlier, or the next crawl would treat pages as known whose links are lost.
    /// 6. Writes terminal states.
    /// 7. Republishes the messages of URLs that this worker no longer holds.
    /// 8. Releases records.
    /// 9. Records which probes returned.
    /// 10. Acknowledges.
    /// 11. Wakes callers that wait for all previous steps.
    pub(crate) async fn carry_out(mut self, member: &Member) -> Result<Settled, Fatal> {
        self.extend_leases(member).await?;
        self.publish_dead_letters(member).await?;
        self.admit_links(member).await?;
        self.park(member).await?;
        self.remember(member).await?;
        self.finish(member).await?;
        self.republish_messages(member).await?;
        self.release_records(member).await?;
        self.note_probes(member).await?;
        self.acknowledge(member).await;
        self.answer_flushes();
        Ok(self.settled)
    }

    /// A URL that was held for long may have another holder by now, and a published dead letter cannot be taken back.
    async fn extend_leases(&mut self, member: &Member) -> Result<(), Fatal> {
        let is_in_doubt = |ends: &mut Finishing| {
            ends.completion.dead_letter.is_some()
                || member.held.is_older(&ends.message, member.lease_period())
        };
        let in_doubt: Vec<Finishing> = self.finishing.extract_if(.., is_in_doubt).collect();
        let messages: Vec<Message> = in_doubt.iter().map(|ends| ends.message.clone()).collect();
        for (ends, is_held) in in_doubt.into_iter().zip(member.extend(&messages).await?) {
            match is_held {
                true => self.finishing.push(ends),
                false => self.republish.push(ends.message),
            }
        }
        Ok(())
    }

    async fn publish_dead_letters(
        &mut self,
        Member { records, broker, health, .. }: &Member,
    ) -> Result<(), Fatal> {
        if !self.dead_letters.is_empty() {
            health.insist("noting what is no URL", || records.note_invalid(&self.dead_letters)).await?;
        }
        self.dead_letters.extend(self.finishing.iter().filter_map(Finishing::dead_letter));
        if !self.dead_letters.is_empty() {
            health.insist("storing dead letters", || broker.dead_letter(&self.dead_letters)).await?;
        }
        Ok(())
    }

    /// A page that this worker no longer holds is republished: another worker has it, or the store has forgotten it.
    async fn admit_links(&mut self, member: &Member) -> Result<(), Fatal> {
        self.finishing.iter_mut().for_each(|ends| ends.completion.count_handed());
        let elsewhere =
            self.finishing.iter().flat_map(|ends| ends.completion.elsewhere.iter().cloned()).collect();
        links::admit_elsewhere(member, elsewhere).await?;
        let linking: Vec<Finishing> =
            self.finishing.extract_if(.., |ends| !ends.completion.links.is_empty()).collect();
        if linking.is_empty() {
            return Ok(());
        }
        let linking_of = |Finishing { completion, .. }: &Finishing| Linking {
            page: completion.finish.claim.clone(),
            links: completion.links.clone(),
        };
        let traces: Vec<_> = linking.iter().map(|ends| ends.message.trace.as_deref()).collect();
        let admitted = links::admit(member, linking.iter().map(linking_of).collect(), &traces).await?;
        for (mut ends, taken) in linking.into_iter().zip(admitted) {
            match taken {
                Linked::Taken(Admitted { links, left_out }) => {
                    let Completion { finish, links: of_page, .. } = &mut ends.completion;
                    left_out.iter().for_each(|(limit, links)| finish.left_out.add(limit, links));
                    *of_page = links;
                    self.finishing.push(ends);
                }
                Linked::NotHeld => self.republish.push(ends.message),
                Linked::StoreFull => self.settled.not_stored.push(ends.into()),
            }
        }
        Ok(())
    }

    /// Record and message have the same instant. URLs that this worker no longer holds are republished.
    async fn park(&mut self, member: &Member) -> Result<(), Fatal> {
        let Member { records, broker, health, worker, .. } = member;
        if !self.delays.is_empty() {
            let mut parkings = Vec::with_capacity(self.delays.len());
            let mut parked = Vec::with_capacity(self.delays.len());
            for Delay { message, until, failed } in self.delays.drain(..) {
                let wake = broker.wake(until);
                parkings.push(Parking { claim: Claim::new(&message), until: wake.at, failed });
                parked.push(Parked { message: Message { wake: Some(wake.at), ..message }, wake });
            }
            let parking = async || one_each(records.park(worker, &parkings).await?, parkings.len(), "URLs");
            let mut held = health.insist("putting aside", parking).await?.into_iter();
            let (parked, lost): (Vec<Parked>, Vec<Parked>) =
                parked.into_iter().partition(|_| held.next() == Some(true));
            parked.iter().for_each(|parked| self.forget(member, &parked.message));
            self.republish.extend(lost.into_iter().map(|parked| parked.message));
            outbox::park(&**records, &**broker, parked, health).await.map_err(Fatal)?;
        }
        if !self.waiting.is_empty() {
            let mut parked = Vec::with_capacity(self.waiting.len());
            for (message, until) in std::mem::take(&mut self.waiting) {
                self.forget(member, &message);
                parked.push(Parked { message, wake: broker.wake(until) });
            }
            health.insist("parking", || broker.park(&parked)).await?;
        }
        if !self.newer.is_empty() {
            let wake = broker.wake(UnixMs::now().plus(until_another_worker(0)));
            health.insist("parking", || broker.pass_on(&self.newer, wake)).await?;
        }
        Ok(())
    }

    async fn remember(&mut self, member: &Member) -> Result<(), Fatal> {
        let memories = Visits::new(self.finishing.iter().map(|ends| &ends.completion));
        match memories.write(member).await {
            Err(error) if error.kind == ErrorKind::Full => {
                let remembers = |ends: &mut Finishing| ends.completion.memory.is_some();
                self.settled
                    .not_stored
                    .extend(self.finishing.extract_if(.., remembers).map(Settlement::from));
                Ok(())
            }
            written => written.map_err(Fatal),
        }
    }

    /// URLs that this worker no longer holds are republished.
    async fn finish(&mut self, member: &Member) -> Result<(), Fatal> {
        let Member { records, health, worker, .. } = member;
        if self.finishing.is_empty() {
            return Ok(());
        }
        let finishes: Vec<Finish> =
            self.finishing.iter().map(|ends| ends.completion.finish.clone()).collect();
        let finishing = async || one_each(records.finish(worker, &finishes).await?, finishes.len(), "ends");
        let ended = health.insist("finishing", finishing).await?;
        for (Finishing { message, completion }, ended) in
            std::mem::take(&mut self.finishing).into_iter().zip(ended)
        {
            match ended {
                true => {
                    self.forget(member, &message);
                    self.settled.ended.push(completion);
                }
                false => self.republish.push(message),
            }
        }
        Ok(())
    }

    async fn republish_messages(&mut self, member: &Member) -> Result<(), Fatal> {
        let messages = std::mem::take(&mut self.republish);
        if !messages.is_empty() {
            messages.iter().for_each(|message| self.forget(member, message));
            let Member { records, broker, health, .. } = member;
            health.insist("sending again", || broker.publish(&messages)).await?;
            // Tasks that another worker has, or the store has forgotten, are not listed.
            outbox::list_urgent(&**records, &messages, Tries::Repeated(health)).await.map_err(Fatal)?;
        }
        Ok(())
    }

    async fn release_records(&mut self, member: &Member) -> Result<(), Fatal> {
        let Member { records, health, worker, held, .. } = member;
        if !self.releases.is_empty() {
            let claims: Vec<Claim> = self.releases.iter().map(Claim::new).collect();
            health.insist("giving back", || records.release(worker, &claims)).await?;
            outbox::list_urgent(&**records, &self.releases, Tries::Repeated(health)).await.map_err(Fatal)?;
            let late = claims.iter().flat_map(|claim| held.forget(claim));
            self.receipts_to_release.extend(late);
        }
        Ok(())
    }

    async fn note_probes(&self, Member { records, health, .. }: &Member) -> Result<(), Fatal> {
        if !self.probes.is_empty() {
            health.insist("noting probes", || records.probes_returned(&self.probes)).await?;
        }
        Ok(())
    }

    fn answer_flushes(&mut self) {
        for done in self.flushed.drain(..) {
            // The caller may have given up.
            let _ = done.send(());
        }
    }

    /// After a lost connection these messages are delivered again, and then dropped or claimed.
    async fn acknowledge(&self, Member { broker, .. }: &Member) {
        let acked = broker.ack(&self.receipts).await;
        let released = broker.release(&self.receipts_to_release).await;
        if let Err(error) = acked.and(released) {
            debug!(%error, "not acknowledged; the messages come again");
        }
    }
}

impl Finishing {
    /// Returns the dead letter for other programs, if there is one.
    fn dead_letter(&self) -> Option<DeadLetter> {
        let cause = self.completion.dead_letter.clone()?;
        Some(DeadLetter { url: self.message.work.to_string(), crawl: self.message.crawl.clone(), cause })
    }
}

impl From<Finishing> for Settlement {
    fn from(Finishing { message, completion }: Finishing) -> Self {
        Self { message, disposition: Disposition::Finish(Box::new(completion)) }
    }
}
