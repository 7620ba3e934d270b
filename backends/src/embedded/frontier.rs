//! The engine's interface for a worker.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use trawl_common::backoff::Backoff;
use trawl_common::clock;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    self, Activity, BeatReply, Claimed, Fatal, Frontier, Heartbeat, Joining, Settled, Settlement,
};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use crate::embedded::claim::claiming::{Claim, Got, Want, claim};
use crate::embedded::crawls;
use crate::embedded::crawls::beats;
use crate::embedded::crawls::stats::LastBeat;
use crate::embedded::records::Unreadable;
use crate::embedded::records::address::Address;
use crate::embedded::records::corrupt::quarantine;
use crate::embedded::records::holdings::Holder;
use crate::embedded::settle::Batch;
use crate::embedded::settle::transitions;
use crate::embedded::store::{Store, answered};

/// The name of the operation in reports of failed claims.
const CLAIMING: &str = "claiming URLs";

/// A worker that has joined. When it is dropped, its records become available to others.
pub(super) struct EmbeddedFrontier {
    store: Arc<Store>,
    holder: Arc<Holder>,
    health: Arc<Health>,
    stop: CancellationToken,
    urls: Claims,
    tasks: Claims,
    last_beat: Arc<LastBeat>,
}

/// The claims of some queues.
struct Claims {
    sources: &'static [SourceQueue],
    /// Maximum number of records of each queue that the worker may hold.
    prefetch: usize,
    claiming: Mutex<Claiming>,
}

impl Claims {
    fn new(sources: &'static [SourceQueue], prefetch: u16) -> Self {
        Self { sources, prefetch: prefetch.into(), claiming: Mutex::default() }
    }
}

/// The state that a cancelled call leaves to the next one.
#[derive(Default)]
struct Claiming {
    asked: Option<oneshot::Receiver<ports::Result<Got>>>,
    ready: VecDeque<Claim>,
    unreadable: Vec<Unreadable>,
}

impl EmbeddedFrontier {
    /// Creates a worker that holds nothing yet.
    pub(super) fn new(
        store: Arc<Store>,
        last_beat: Arc<LastBeat>,
        Joining { worker, settings, health, tasks, stop, .. }: Joining,
    ) -> Self {
        Self {
            store,
            last_beat,
            health,
            holder: Arc::new(Holder::new(worker)),
            stop: stop.child_token(),
            urls: Claims::new(&SourceQueue::OF_URLS, settings.worker.prefetch),
            tasks: Claims::new(&[SourceQueue::Task], tasks),
        }
    }

    /// Waits until there is something to hand out.
    async fn wait(
        &self,
        of: &Claims,
        Claiming { asked, ready, .. }: &mut Claiming,
        max: usize,
    ) -> Result<(), Fatal> {
        let mut backoff = Backoff::default();
        while ready.is_empty() {
            // Listening starts before checking, so that no change is missed in between.
            let stirred = self.store.stirred();
            let is_old = asked.is_some();
            let answer = asked.get_or_insert_with(|| self.ask(of, max)).await;
            *asked = None;
            let next_due = match answered(answer) {
                Ok(Got { claims, next_due }) => {
                    self.health.report_ok(CLAIMING);
                    ready.extend(claims);
                    next_due
                }
                Err(error) if error.is_temporary() => {
                    self.health.report_failure(CLAIMING, &error);
                    backoff.pause().await;
                    continue;
                }
                Err(error) => return Err(Fatal(error.during(CLAIMING))),
            };
            // An old answer says nothing about the present.
            if !ready.is_empty() || is_old {
                continue;
            }
            match next_due {
                // A timeout means that the record is due.
                Some(due) => drop(timeout(due.wait_from(UnixMs::now()), stirred).await),
                None => stirred.await,
            }
        }
        Ok(())
    }

    fn ask(
        &self,
        &Claims { sources, prefetch, .. }: &Claims,
        max: usize,
    ) -> oneshot::Receiver<ports::Result<Got>> {
        let want = Want { holder: Arc::clone(&self.holder), sources, prefetch, max };
        self.store.submit(move |db, memory| claim(db, memory, &want))
    }

    /// Removes records that cannot be read.
    async fn clear(&self, unreadable: &mut Vec<Unreadable>) -> Result<(), Fatal> {
        while let Some(record) = unreadable.last() {
            let clearing = || {
                let record = record.clone();
                self.store.call(move |db, memory| quarantine(db, memory, &record))
            };
            self.health.insist("taking a record out of the way", clearing).await?;
            unreadable.pop();
        }
        Ok(())
    }

    async fn next(&self, of: &Claims, max: usize) -> Result<Vec<Claimed>, Fatal> {
        let mut claiming = of.claiming.lock().await;
        let mut next = Vec::new();
        while next.is_empty() {
            self.clear(&mut claiming.unreadable).await?;
            self.wait(of, &mut claiming, max).await?;
            let Claiming { ready, unreadable, .. } = &mut *claiming;
            for claim in ready.drain(..max.min(ready.len())) {
                match claim.claimed() {
                    Ok(claimed) => next.push(claimed),
                    Err(record) => unreadable.push(record),
                }
            }
        }
        Ok(next)
    }

    /// Returns the next records of some queues; none once the worker is to stop.
    async fn claim_of(&self, of: &Claims, max: usize) -> Result<Vec<Claimed>, Fatal> {
        let claimed = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            claimed = self.next(of, max.max(1)) => Some(claimed),
        };
        match claimed {
            Some(claimed) => claimed,
            None => pending().await,
        }
    }
}

/// Returns a message with the address of its record.
fn addressed(url: &Message) -> (Address, Message) {
    (Address::new(&url.crawl, url.work.as_str()), url.clone())
}

#[async_trait]
impl Frontier for EmbeddedFrontier {
    async fn claim(&self, max: usize) -> Result<Vec<Claimed>, Fatal> {
        self.claim_of(&self.urls, max).await
    }

    async fn claim_tasks(&self, max: usize) -> Result<Vec<Claimed>, Fatal> {
        self.claim_of(&self.tasks, max).await
    }

    async fn start(&self, urls: &[ports::Claim]) -> Result<Vec<StartReply>, Fatal> {
        let addresses: Arc<[Address]> =
            urls.iter().map(|claim| Address::new(&claim.crawl, claim.key.as_str())).collect();
        let starting = || {
            let (holder, addresses) = (Arc::clone(&self.holder), Arc::clone(&addresses));
            self.store.call(move |db, memory| transitions::start(db, memory, &holder.worker, &addresses))
        };
        self.health.insist("counting starts", starting).await
    }

    async fn extend(&self, urls: &[&Message]) -> Result<Vec<bool>, Fatal> {
        let urls: Arc<[(Address, Message)]> = urls.iter().copied().map(addressed).collect();
        let extending = || {
            let (holder, urls) = (Arc::clone(&self.holder), Arc::clone(&urls));
            self.store.call(move |db, memory| transitions::extend(db, memory, &holder.worker, &urls))
        };
        self.health.insist("extending leases", extending).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Settled, Fatal> {
        let batch = Arc::new(Batch::new(batch));
        let settling = || {
            let (holder, batch) = (Arc::clone(&self.holder), Arc::clone(&batch));
            self.store.call(move |db, memory| batch.settle(db, memory, &holder.worker))
        };
        let ended = self.health.insist("settling", settling).await?;
        Ok(Arc::unwrap_or_clone(batch).settled(ended))
    }

    async fn release(&self) -> Result<(), Fatal> {
        self.stop.cancel();
        let leaving = || {
            let holder = Arc::clone(&self.holder);
            self.store.call(move |db, memory| transitions::leave(db, memory, &holder))
        };
        self.health.insist("giving back", leaving).await?;
        self.last_beat.end(&self.holder.worker);
        drop(self.store.submit(|db, _| beats::write(db, None)));
        Ok(())
    }

    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool, Fatal> {
        let looking = || {
            let address = Address::new(crawl, url.as_str());
            self.store.call(move |db, memory| Ok(memory.seen.find(db, &address)?.is_some()))
        };
        self.health.insist("looking for a URL", looking).await
    }

    /// Stores the heartbeat for people to see, also in the file for those who read it from outside.
    async fn beat(&self, beat: &Heartbeat) -> ports::Result<BeatReply> {
        clock::go_on();
        let reply = self.last_beat.is(beat);
        let living = self.last_beat.living();
        drop(self.store.submit(move |db, _| {
            crawls::touch(db)?;
            beats::write(db, living.as_ref())
        }));
        Ok(reply)
    }

    /// There are no messages to send.
    fn activity(&self) -> Activity {
        Activity { in_flight: self.holder.holds(), unproven: 0 }
    }
}

impl Drop for EmbeddedFrontier {
    fn drop(&mut self) {
        let holder = Arc::clone(&self.holder);
        self.store.note(move |memory| transitions::lose(memory, &holder));
    }
}
